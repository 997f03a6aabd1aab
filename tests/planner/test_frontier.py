"""The Pareto frontier: nothing on it is beaten, and nothing off it is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Constant, Exponential, LogNormal, Weibull
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


FLEETS = {
    "equal": WHO,
    "thousand": Federation(1000, Exponential(1.0)),
    "two speeds": Federation.exponential([1.0] * 50 + [0.1] * 50),
    "heavy tail": Federation(100, Weibull(0.5, 1.0)),
    "offline": Federation(60, LogNormal(mean=8.0, std=4.0), availability=0.8),
    "one far away": Federation(20, LogNormal(np.r_[np.zeros(19), 5.0], np.full(20, 0.3))),
    "constant": Federation(12, Constant(2.0)),
    "one client": Federation(1, Exponential(1.0), availability=0.5),
}


@pytest.mark.parametrize("who", FLEETS.values(), ids=FLEETS.keys())
def test_few_choices_with_enough_reports(who: Federation) -> None:
    front = frontier(who)
    assert 1 <= len(front.choices) <= 12
    assert front.knee in front.choices
    deadlines = [e.deadline for e in front.choices]
    assert deadlines == sorted(deadlines)
    reach = float(np.mean(who.availability)) * who.clients
    for e in front.choices:
        assert e.expected_reports >= min(0.05 * reach, 1.0) * (1 - 1e-9)
    beyond = [e for e in front.choices if e.expected_reports > 0.999 * reach]
    assert len(beyond) <= 1, "only one waits for the last reports"


def test_knee_is_near_the_default_plan() -> None:
    for name in ("equal", "two speeds", "heavy tail", "offline"):
        who = FLEETS[name]
        low, high = plan(who).good_deadlines
        assert low <= frontier(who).knee.deadline <= high


def test_no_choice_is_beaten_per_report() -> None:
    """Waste per report and mean age of equal clients, by their closed forms at quorum 1."""
    choices = frontier(FLEETS["thousand"]).choices
    t = np.array([e.deadline for e in choices])
    p = -np.expm1(-t)
    waste, age = t * (1 - p) / p, t * (0.5 + 1 / p)
    assert np.all(np.diff(waste) < 0)
    assert np.all(np.diff(age) > 0)
    assert [e.waste_per_gradient for e in choices] == pytest.approx(waste.tolist(), rel=1e-6)
