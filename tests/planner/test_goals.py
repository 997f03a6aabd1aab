"""Goals: J by its definition, and least time or work to a gap, over deadlines and quorums."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Prices, ToGap, plan
from cafe.theory import Problem, Variance, bound, expect

WHO = Federation(40, Exponential(1.0))
PROBLEM = Problem(smoothness=4.0, convexity=1.0, noise=2.0, heterogeneity=1.5, distance=3.0)


def test_j_is_its_definition() -> None:
    expected = expect(WHO, quorum=5, deadline=0.4)
    j = 3 * expected.waste + 7 * expected.broadcasts + expected.age
    assert Prices(3, 7).cost(expected) == pytest.approx(j)


def test_infinite_waste_at_price_0() -> None:
    hopeless = expect(Federation(2, Exponential(1e-300)), quorum=2, deadline=1e-140)
    assert Prices(0, 0).cost(hopeless) == np.inf
    assert Prices(1, 1).cost(hopeless) == np.inf


@pytest.mark.parametrize("spend", ["time", "client-seconds"])
def test_cost_to_a_gap_is_rounds_times_their_price(spend: str) -> None:
    goal = ToGap(PROBLEM, 0.01, "time" if spend == "time" else "client-seconds", overhead=0.2)
    expected = expect(WHO, quorum=5, deadline=0.4)
    each = 0.4 + 0.2 if spend == "time" else expected.setting.work + 0.2
    rounds = goal.cost(expected) / each
    assert bound(PROBLEM, expected.variance, rounds) == pytest.approx(0.01)


@pytest.mark.parametrize("deadline", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("ratio", [0.01, 1.0, 30.0])
def test_chosen_quorum_has_the_least_cost(deadline: float, ratio: float) -> None:
    goal = ToGap.from_ratio(ratio)
    first = expect(WHO, quorum=1, deadline=deadline)
    costs = [goal.cost(expect(WHO, quorum=m, deadline=deadline)) for m in range(1, 41)]
    chosen = goal.quorum(first, 1, 40)
    assert costs[chosen - 1] <= min(costs) * (1 + 2e-6)
    bounded = goal.quorum(first, 3, 7)
    assert 3 <= bounded <= 7
    assert costs[bounded - 1] <= min(costs[2:7]) * (1 + 2e-6)


@pytest.mark.parametrize("spend", ["time", "client-seconds"])
def test_no_choice_beats_the_plan_to_a_gap(spend: str) -> None:
    goal = ToGap(PROBLEM, 0.01, "time" if spend == "time" else "client-seconds", overhead=0.5)
    made = plan(WHO, goal=goal)
    for deadline in np.geomspace(0.01, 15, 60):
        for quorum in (1, 5, 20, 35, 40):
            cost = goal.cost(expect(WHO, quorum=quorum, deadline=float(deadline)))
            assert cost >= made.cost * (1 - 1e-5)


@pytest.mark.slow
def test_deadline_depends_on_the_ratio_of_noise_to_heterogeneity() -> None:
    """Error per time is (V T/(e^T-1) + s T/(1-e^-T)) / N for N p >> 1: an interior T iff s < V."""
    many = Federation(2000, Exponential(1.0))
    ratio = 0.1
    grid = np.geomspace(1e-2, 10, 4000)
    predicted = grid[np.argmin(grid / np.expm1(grid) + ratio * grid / -np.expm1(-grid))]
    assert plan(many, goal=ToGap.from_ratio(ratio)).deadline == pytest.approx(predicted, rel=0.02)
    with pytest.raises(InputError, match="overhead per round"):
        plan(many, goal=ToGap.from_ratio(2.0))
    longer = plan(many, goal=ToGap.from_ratio(2.0, overhead=1.0))
    shorter = plan(many, goal=ToGap.from_ratio(2.0, overhead=0.01))
    assert shorter.deadline < longer.deadline


def test_the_ratio_is_the_limit_of_small_gaps() -> None:
    problem = Problem(smoothness=4.0, convexity=2.0, noise=6.0, heterogeneity=1.5)
    ratio = 6.0 / (2 * 4.0 * 1.5)
    full = plan(WHO, goal=ToGap(problem, 1e-10, overhead=0.3))
    short = plan(WHO, goal=ToGap.from_ratio(ratio, overhead=0.3))
    assert short.deadline == pytest.approx(full.deadline, rel=1e-3)
    assert short.quorum == full.quorum


def test_rounds_succeed_without_noise() -> None:
    made = plan(WHO, goal=ToGap.from_ratio(0.0, overhead=0.05))
    assert made.expected.success_probability > 0.1


def test_bad_goals_are_refused() -> None:
    with pytest.raises(InputError, match="gap must be a positive"):
        ToGap(PROBLEM, 0.0)
    with pytest.raises(InputError, match="Did you mean 'client-seconds'"):
        ToGap(PROBLEM, 0.1, "client-second")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="overhead"):
        ToGap(PROBLEM, 0.1, overhead=-1.0)
    with pytest.raises(InputError, match="noise ratio"):
        ToGap.from_ratio(-1.0)


def test_more_reports_reduce_the_variance() -> None:
    few = Variance.of(expect(WHO, quorum=1, deadline=0.1).setting)
    many = Variance.of(expect(WHO, quorum=1, deadline=3.0).setting)
    assert few.noise > many.noise
    assert few.sampling > many.sampling
