"""The range of good deadlines ends exactly where the cost is 5 % above the least."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.federation import Federation
from cafe.latency import Constant, Exponential
from cafe.planner import Plan, plan
from cafe.theory import expect

WHO = Federation(50, Exponential(1.0))


def cost(made: Plan, deadline: float) -> float:
    return made.goal.cost(expect(made.federation, quorum=made.quorum, deadline=deadline))


@pytest.mark.parametrize("prices", [(None, None), (20.0, 100.0), (0.1, 5.0)])
def test_ends_cost_five_percent_more(prices: tuple[float | None, float | None]) -> None:
    made = plan(WHO, waste_price=prices[0], broadcast_price=prices[1])
    low, high = made.good_deadlines
    assert low < made.deadline < high
    for end in (low, high):
        assert cost(made, end) == pytest.approx(1.05 * made.cost, rel=1e-3)
    for deadline in np.geomspace(low, high, 50):
        assert cost(made, float(deadline)) <= 1.05 * made.cost * (1 + 1e-9)
    assert f"from {low:.3g} to {high:.3g} s" in made.explanation[3]


def test_limits_end_the_range() -> None:
    made = plan(WHO, at_most={"deadline": 1.0})
    assert made.good_deadlines[1] == pytest.approx(1.0, rel=1e-4)


def test_range_may_have_no_end() -> None:
    made = plan(WHO, waste_price=20, broadcast_price=100, close_when_all=True)
    assert made.good_deadlines[1] == np.inf
    assert "s on costs at most" in made.explanation[3]


def test_no_deadline_before_the_first_report_is_good() -> None:
    low, _ = plan(Federation(5, Constant(2.0))).good_deadlines
    assert low == pytest.approx(2.0, rel=1e-4)
