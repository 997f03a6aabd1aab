"""Plans: the global optimum, warnings about other optima and bad models, no better neighbour."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    LogNormal,
    Mixture,
    ShiftedExponential,
    Uniform,
    Weibull,
)
from cafe.planner import Plan, Prices, ToGap, plan, pooled_quantile
from cafe.theory import Problem, expect, objective_as_printed

PAPER = Federation(50, Exponential(1.0))


@pytest.fixture(scope="module")
def two_basins() -> Plan:
    return plan(PAPER, waste_price=20, broadcast_price=100)


def test_both_basins_of_the_paper_are_found(two_basins: Plan) -> None:
    best, other = two_basins.local_optima
    assert (best.quorum, other.quorum) == (1, 1)
    assert best.deadline == pytest.approx(8.5209, rel=1e-4)
    assert best.cost == pytest.approx(114.481, rel=1e-5)
    assert other.deadline == pytest.approx(0.04330, rel=1e-3)
    assert other.cost == pytest.approx(160.846, rel=1e-5)
    for optimum in (best, other):
        printed = objective_as_printed(50, 1.0, optimum.deadline, 20, 100)
        assert optimum.cost == pytest.approx(printed, rel=1e-12)


@pytest.mark.slow
def test_warning_if_all_clients_report_before_the_deadline(two_basins: Plan) -> None:
    assert any("probability 0.99" in warning for warning in two_basins.warnings)
    closing = plan(PAPER, waste_price=20, broadcast_price=100, close_when_all=True)
    assert not any("All clients report" in warning for warning in closing.warnings)
    assert closing.cost < two_basins.cost


def test_grid_search_finds_nothing_better(two_basins: Plan) -> None:
    grid = np.geomspace(1e-5, 100, 5000)
    costs = [objective_as_printed(50, 1.0, float(t), 20, 100) for t in grid]
    assert two_basins.cost <= min(costs)
    minima = sum(b < a and b < c for a, b, c in zip(costs, costs[1:], costs[2:], strict=False))
    assert minima == len(two_basins.local_optima)


FEDERATIONS = {
    "unequal": Federation.exponential([0.2, 0.5, 1.0, 2.0, 5.0], [0.5, 0.7, 0.9, 1.0, 1.0]),
    "heavy tail": Federation(20, LogNormal(0.0, 2.0)),
    "two speeds": Federation(30, Mixture([Uniform(0.5, 1.0), Uniform(9.0, 10.0)], [0.6, 0.4])),
    "groups": Federation.join(
        Federation(10, Weibull(0.7, 1.0)), Federation(5, Weibull(2.0, 8.0), 0.6)
    ),
    "constant": Federation(12, Constant(2.0)),
    "observed": Federation(25, Empirical([0.5, 0.7, 1.1, 1.3, 2.0, 4.0, 9.0])),
    "one client": Federation(1, Exponential(1.0)),
}


@pytest.mark.parametrize("who", FEDERATIONS.values(), ids=FEDERATIONS.keys())
@pytest.mark.parametrize("prices", [(1.0, 10.0), (0.01, 1.0), (50.0, 3.0)])
@pytest.mark.slow
def test_no_deadline_nor_quorum_beats_the_plan(
    who: Federation, prices: tuple[float, float]
) -> None:
    made = plan(who, waste_price=prices[0], broadcast_price=prices[1])
    goal = Prices(*prices)
    low, high = made.deadline / 1e4, made.deadline * 1e3
    steps = who.latency.breaks()
    deadlines = np.unique(np.concatenate([np.geomspace(low, high, 400), steps]))
    for quorum, t in itertools.product({1, who.clients}, deadlines):
        cost = goal.cost(expect(who, quorum=quorum, deadline=float(t)))
        assert cost >= made.cost * (1 - 1e-9), (quorum, t)
    assert goal.cost(made.expected) == pytest.approx(made.cost, rel=1e-12)
    assert made.cost == min(o.cost for o in made.local_optima)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.integers(2, 60), st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0.1, 200),
    st.floats(0.01, 100),
)  # fmt: skip
@pytest.mark.slow
def test_time_units_do_not_matter(
    clients: int, rate: float, waste_price: float, broadcast_price: float, unit: float
) -> None:
    made = plan(
        Federation(clients, Exponential(rate)),
        waste_price=waste_price,
        broadcast_price=broadcast_price,
    )
    other = plan(
        Federation(clients, Exponential(rate / unit)),
        waste_price=waste_price,
        broadcast_price=broadcast_price * unit,
    )
    assert other.cost == pytest.approx(unit * made.cost, rel=1e-6)


def test_grouping_into_kinds_does_not_matter() -> None:
    rates = np.repeat([0.5, 2.0], 20)
    each = plan(Federation.exponential(rates), waste_price=1, broadcast_price=10)
    joined = plan(
        Federation.join(Federation(20, Exponential(0.5)), Federation(20, Exponential(2.0))),
        waste_price=1,
        broadcast_price=10,
    )
    assert joined.deadline == pytest.approx(each.deadline, rel=1e-5)
    assert joined.cost == pytest.approx(each.cost, rel=1e-10)


def test_a_fixed_quorum_is_kept() -> None:
    made = plan(PAPER, waste_price=1, broadcast_price=10, quorum=10)
    assert {o.quorum for o in made.local_optima} == {10}
    free = plan(PAPER, waste_price=1, broadcast_price=10)
    assert free.quorum == 1
    assert free.cost <= made.cost


def test_age_alone_has_no_best_deadline() -> None:
    with pytest.raises(InputError, match="keeps falling as the deadline shrinks"):
        plan(PAPER, waste_price=0, broadcast_price=0)
    made = plan(PAPER, waste_price=0, broadcast_price=0, at_least={"deadline": 0.2})
    assert made.deadline == pytest.approx(0.2)


def test_prices_and_a_goal_exclude_each_other() -> None:
    with pytest.raises(InputError, match="not both"):
        plan(PAPER, waste_price=1, broadcast_price=1, goal=ToGap.from_ratio(1.0))
    with pytest.raises(InputError, match="waste price"):
        plan(PAPER, waste_price=-1, broadcast_price=1)
    with pytest.raises(InputError, match="at most the number of clients"):
        plan(PAPER, waste_price=1, broadcast_price=1, quorum=51)


def test_explanation_has_four_sentences_with_figures(two_basins: Plan) -> None:
    assert len(two_basins.explanation) == 4
    text = " ".join(two_basins.explanation)
    assert f"{two_basins.deadline:.4g} s" in text
    assert f"{two_basins.expected.waste:.4g} client-seconds" in text
    assert "2 basins" in text


def test_rivals_have_their_definitions(two_basins: Plan) -> None:
    rivals = {rival.name: rival.expected for rival in two_basins.rivals}
    assert rivals["deadline = mean"].deadline == pytest.approx(1.0)
    assert rivals["deadline = 2 x median"].deadline == pytest.approx(2 * np.log(2), rel=1e-9)
    assert rivals["deadline = p95"].deadline == pytest.approx(-np.log(0.05), rel=1e-9)
    assert rivals["deadline = p95"].quorum == 40
    assert rivals["wait for all"].quorum == 50
    assert len(rivals) <= 7
    for rival in two_basins.rivals:
        assert rival.cost == pytest.approx(two_basins.goal.cost(rival.expected))
        assert rival.cost >= two_basins.cost


def test_pooled_quantile_against_a_sample() -> None:
    who = FEDERATIONS["groups"]
    times = who.sample(np.random.default_rng(0), 20_000)
    seen = times[np.isfinite(times)]
    share = np.mean(seen <= pooled_quantile(who, 0.95))
    assert share == pytest.approx(0.95, abs=4.5 * np.sqrt(0.05 * 0.95 / seen.size))


def test_sensitivity(two_basins: Plan) -> None:
    rows = two_basins.sensitivity()
    assert [r.rate_error for r in rows] == [-0.5, -0.1, 0.1, 0.5]
    for row in rows:
        truth = Federation(50, Exponential(1.0 * (1 + row.rate_error)))
        cost = two_basins.goal.cost(expect(truth, quorum=1, deadline=two_basins.deadline))
        assert row.cost == pytest.approx(cost)
        best = plan(truth, waste_price=20, broadcast_price=100)
        assert row.best_cost == pytest.approx(best.cost, rel=1e-9)
        assert row.loss >= 0
    near = max(r.loss for r in rows if abs(r.rate_error) < 0.2)
    far = max(r.loss for r in rows if abs(r.rate_error) > 0.2)
    assert near < far


def test_plan_as_a_dictionary(two_basins: Plan) -> None:
    values = json.loads(json.dumps(two_basins.to_dict()))
    assert {"quorum", "deadline", "cost", "expected", "local_optima", "warnings"} <= values.keys()
    assert values["local_optima"][0] == {
        "quorum": 1, "deadline": two_basins.deadline, "cost": two_basins.cost,
    }  # fmt: skip
    assert values["expected"]["waste"] == two_basins.expected.waste


def test_progress_increases_to_1() -> None:
    seen: list[float] = []
    plan(PAPER, waste_price=1, broadcast_price=1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_warning_about_unequal_clients() -> None:
    made = plan(
        Federation.exponential([0.05] * 20 + [5.0] * 20), waste_price=1.0, broadcast_price=1.0
    )
    leaning = [w for w in made.warnings if "fast ones" in w]
    assert bool(leaning) == (made.expected.bias > 0.1)
    goal = ToGap.from_ratio(0.5, overhead=0.1)
    assert any("equal clients" in w for w in plan(made.federation, goal=goal).warnings)


def test_public_function_gives_the_same_plan(two_basins: Plan) -> None:
    federation = cafe.Federation(clients=50, latency=cafe.Exponential(rate=1.0))
    again = cafe.plan(federation, waste_price=20, broadcast_price=100, quorum=None)
    assert again.local_optima == two_basins.local_optima


def test_problem_is_checked() -> None:
    with pytest.raises(InputError, match="convexity"):
        Problem(smoothness=1.0, convexity=2.0, noise=1.0, heterogeneity=1.0)


def test_a_plan_for_more_steps_is_the_plan_for_slower_clients() -> None:
    federation = Federation(20, Exponential(np.linspace(0.5, 2.0, 20)), per_step=0.2)
    made = plan(federation, waste_price=0.1, broadcast_price=5, steps=10)
    same = Federation(20, ShiftedExponential(2.0, np.linspace(0.5, 2.0, 20)))
    assert made.to_dict() == plan(same, waste_price=0.1, broadcast_price=5).to_dict()
    assert made.deadline > 2.0
    assert made.federation.per_step == 0.0
    with pytest.raises(InputError, match="steps must be a whole number"):
        plan(federation, waste_price=0.1, broadcast_price=5, steps=0)


def test_steps_without_time_do_not_change_the_plan(two_basins: Plan) -> None:
    made = plan(PAPER, waste_price=20, broadcast_price=100, steps=50)
    assert made.local_optima == two_basins.local_optima


def test_sensitivity_scales_the_steps_too() -> None:
    federation = Federation(20, Exponential(1.0), per_step=0.2)
    rows = plan(federation, waste_price=0.1, broadcast_price=5, steps=10).sensitivity()
    for row in rows:
        slower = federation.scaled(1 / (1 + row.rate_error))
        best = plan(slower, waste_price=0.1, broadcast_price=5, steps=10)
        assert row.best_cost == pytest.approx(best.cost, rel=1e-9)
