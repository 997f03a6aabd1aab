"""The Pareto frontier: nothing on it is beaten, and nothing off it is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import frontier, plan
from cafe.planner.frontier import EQUAL
from cafe.theory import expect

WHO = Federation(50, Exponential(1.0))
COSTS = ("waste", "broadcasts", "age")


def test_no_point_is_dominated() -> None:
    front = frontier(WHO)
    on = np.array([front.column(name) for name in COSTS]).T
    for deadline in np.geomspace(3e-4, 18, 50):
        for quorum in (1, 4, 25):
            other = expect(WHO, quorum=quorum, deadline=float(deadline))
            cost = np.array([getattr(other, name) for name in COSTS])
            better = (cost < (1 - 2 * EQUAL) * on).all(axis=1)
            assert not better.any()


def test_every_optimum_of_j_lies_near_the_frontier() -> None:
    front = frontier(WHO)
    for prices in ((20.0, 100.0), (0.1, 1.0), (3.0, 10.0)):
        made = plan(WHO, waste_price=prices[0], broadcast_price=prices[1])
        least = min(made.goal.cost(p) for p in front.points)
        assert least == pytest.approx(made.cost, rel=0.02)


def test_steps_increase_every_deadline() -> None:
    front = frontier(Federation(50, Exponential(1.0), per_step=0.4), steps=5)
    assert min(front.column("deadline")) > 2.0
    assert frontier(WHO, steps=5).column("age") == frontier(WHO).column("age")
    with pytest.raises(InputError, match="steps must be a whole number"):
        frontier(WHO, steps=0)
    wrong: Any = None
    with pytest.raises(InputError, match=r"federation must be a cafe\.Federation"):
        frontier(wrong)


@pytest.mark.slow
def test_quorum_can_be_fixed_and_rounds_close_early() -> None:
    assert {p.quorum for p in frontier(WHO, quorum=9).points} == {9}
    early = frontier(Federation(5, Exponential(1.0)), close_when_all=True)
    assert all(p.round_duration < p.deadline for p in early.points if p.deadline > 1)
    seen: list[float] = []
    frontier(WHO, progress=seen.append)
    assert seen[-1] == 1.0
