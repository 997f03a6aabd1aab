"""A deadline that is improved with exact costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Plan, plan
from cafe.planner.polishing import polished

UNEQUAL = Federation(30, Exponential(np.linspace(0.3, 3.0, 30)), availability=0.9)


def cost_of(made: Plan, deadline: float) -> float:
    """The exact cost of another deadline with the quorum of the plan."""
    return made.search.goal.cost(made.search.expect(made.quorum, deadline))


@pytest.mark.parametrize("factor", [0.8, 0.95, 1.05, 1.3])
def test_the_best_deadline_is_found_from_one_nearby(factor: float) -> None:
    best = plan(UNEQUAL)
    far = factor * best.deadline
    near = replace(best.local_optima[0], quorum=best.quorum, deadline=far, cost=cost_of(best, far))
    found = polished(best.search, near)
    assert found.quorum == best.quorum
    assert found.cost < near.cost
    assert found.cost == pytest.approx(best.cost, rel=1e-4)
    assert found.deadline == pytest.approx(best.deadline, rel=0.02)


def test_the_best_deadline_stays() -> None:
    best = plan(UNEQUAL)
    found = polished(best.search, best.local_optima[0])
    assert found.cost <= best.local_optima[0].cost
    assert found.deadline == pytest.approx(best.local_optima[0].deadline, rel=0.01)


def test_a_deadline_at_a_maximum_of_the_cost_stays() -> None:
    best = plan(Federation(50, Exponential(1.0)), waste_price=20.0, broadcast_price=100.0)
    top = max(np.geomspace(0.5, 2.0, 200).tolist(), key=lambda t: cost_of(best, t))
    assert 0.9 < top < 1.1  # between the two basins
    near = replace(best.local_optima[0], deadline=top, cost=cost_of(best, top))
    assert polished(best.search, near) == near
