"""Plans with a cohort and a target: no other choice is better, and a simulation agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation
from cafe.latency import Exponential, LogNormal
from cafe.planner import Prices, ToGap, plan
from cafe.theory import Expectation, Setting, Turnout, expect
from cafe.theory.cohort_rounds import CohortRounds

FLEET = Federation.join(
    Federation(25, LogNormal(1.0, 0.4)), Federation(15, LogNormal(2.0, 0.4), availability=0.8)
)
PRICES: dict[str, Any] = {"waste_price": 0.5, "broadcast_price": 5.0}


@pytest.mark.slow
def test_no_cohort_nor_deadline_beats_the_plan() -> None:
    made = plan(FLEET, **PRICES, cohort="auto")
    goal = Prices(0.5, 5.0)
    assert 1 < made.cohort < 40
    assert made.target is None
    costs = {
        (cohort, t): goal.cost(expect(FLEET, quorum=1, deadline=float(t), cohort=cohort))
        for cohort in range(1, 41)
        for t in np.geomspace(0.3, 3.0, 40) * made.deadline
    }
    assert made.cost <= 1.003 * min(costs.values())
    assert made.cost == goal.cost(
        expect(FLEET, quorum=1, deadline=made.deadline, cohort=made.cohort)
    )


@pytest.mark.slow
def test_no_cohort_beats_the_plan_for_a_target() -> None:
    made = plan(FLEET, **PRICES, target=8)
    goal = Prices(0.5, 5.0)
    best, turnouts = np.inf, dict[float, Turnout]()
    for cohort in range(8, 41):
        # Each deadline extends the integrals of the one before, at times that cohorts share.
        rounds = CohortRounds(FLEET, cohort, 8, turnouts, origin=0.2)
        for t in np.geomspace(2.0, 30.0, 25):
            found = Expectation(Setting(FLEET, 1, float(t), 8, cohort, rounds))
            full = found.setting.target_turnout
            reached = found.everybody_probability if full is None else full.success
            if reached >= 0.9:
                best = min(best, goal.cost(found))
    assert made.cost <= 1.005 * best
    assert made.target == 8
    assert made.cohort > 8
    planned = made.expected.setting.target_turnout
    assert planned is not None
    assert planned.success >= 0.9


@pytest.mark.slow
def test_a_simulation_of_the_plan_agrees() -> None:
    made = plan(FLEET, **PRICES, target=8, quorum=6)
    rules: dict[str, Any] = made.rules
    assert set(rules) == {"quorum", "deadline", "cohort", "target"}
    run = cafe.simulate(FLEET, cafe.policies.mcu(**rules), rounds=1500, seed=5)
    e, lengths = made.expected, np.diff(run.by_round["closed"], prepend=0.0)
    error = lengths.std() / len(lengths) ** 0.5
    assert e.round_duration == pytest.approx(lengths.mean(), abs=4.5 * error)
    wastes = run.by_round["waste"]
    error = wastes.std() / len(wastes) ** 0.5
    assert e.waste_per_round == pytest.approx(wastes.mean(), abs=4.5 * error)
    spread = (e.success_probability * (1 - e.success_probability) / 1500) ** 0.5
    assert run.updates / 1500 == pytest.approx(e.success_probability, abs=4.5 * spread + 1e-3)


@pytest.mark.slow
def test_many_kinds_are_searched_on_few_and_judged_on_all() -> None:
    rng = np.random.default_rng(2)
    many = Federation(400, LogNormal(rng.normal(1.0, 0.5, 400), 0.3), availability=0.9)
    seen: list[float] = []
    made = plan(many, waste_price=0.02, broadcast_price=5.0, target=20, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert 20 < made.cohort < 400
    assert made.search.sketch.federation.kinds == 128
    exact = expect(many, quorum=1, deadline=made.deadline, cohort=made.cohort, target=20)
    assert made.cost == pytest.approx(Prices(0.02, 5.0).cost(exact), rel=1e-9)
    for factor in (0.9, 1.1):
        other = made.search.at(factor * made.deadline)
        assert other is None or other.cost >= 0.999 * made.cost


@pytest.mark.slow
def test_a_goal_without_a_price_of_work_still_invites_few() -> None:
    goal = ToGap.from_ratio(1.0, overhead=2.0)
    made = plan(Federation(500, Exponential(0.3)), goal=goal, target=20)
    assert 20 < made.cohort < 100
    everybody = plan(Federation(500, Exponential(0.3)), goal=goal, cohort="auto")
    assert everybody.cohort == 500


@pytest.mark.slow
def test_limits_on_messages_and_cohort() -> None:
    made = plan(FLEET, **PRICES, cohort="auto", target="all", at_most={"messages": 12.5})
    assert made.cohort == made.target
    assert made.expected.messages <= 12.5 * (1 + 1e-9)
    assert 10 <= made.cohort <= 12
    least = plan(FLEET, **PRICES, cohort="auto", at_least={"cohort": 35})
    assert least.cohort >= 35


@pytest.mark.slow
def test_target_auto_is_not_worse_than_none() -> None:
    free = plan(FLEET, **PRICES, cohort=20, target="auto")
    assert free.cohort == 20
    assert free.target is not None
    assert 1 <= free.target <= 20
    assert free.cost <= 1.003 * plan(FLEET, **PRICES, cohort=20, target="all").cost


def test_all_clients_and_no_target_is_the_plain_plan() -> None:
    plain = plan(FLEET, **PRICES)
    made = plan(FLEET, **PRICES, cohort="all")
    assert made.local_optima == plain.local_optima
    assert made.to_dict() == plain.to_dict()
    assert made.rules == {"quorum": plain.quorum, "deadline": plain.deadline}
    assert plan(FLEET, **PRICES, cohort=40).local_optima == plain.local_optima


def test_a_cohort_appears_in_the_plan() -> None:
    made = plan(FLEET, **PRICES, cohort=10)
    values = made.to_dict()
    assert values["cohort"] == 10
    assert "target" not in values
    assert "Invite 10 of 40 clients, accept at least 1, wait at most" in made.explanation[0]
    assert {rival.expected.cohort for rival in made.rivals} == {10}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cohort": 41}, r"from 1 to the number of clients \(40\).*Got 41"),
        ({"cohort": 0}, "Got 0"),
        ({"cohort": 2.5}, r"Got 2\.5"),
        ({"cohort": True}, "Got True"),
        ({"target": "some"}, "'auto' or 'all'. Got 'some'"),
        ({"cohort": "aut"}, "Did you mean 'auto'"),
        ({"cohort": 5, "target": 6}, r"cohort must be at least the target \(6\)"),
        ({"cohort": 5, "quorum": 6}, r"cohort must be at least the quorum \(6\)"),
        ({"target": 5, "quorum": 6}, r"target must be at least the quorum \(6\)"),
        ({"cohort": 5, "close_when_all": True}, "close_when_all, or a cohort"),
    ],
)
def test_wrong_sizes_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(FLEET, **PRICES, **given)


def test_a_target_that_cannot_be_reached() -> None:
    with pytest.raises(InfeasibleError, match="target of 15 reports cannot be reached in 90%"):
        plan(FLEET, **PRICES, cohort=15, target=15, at_most={"deadline": 2.0})
    with pytest.raises(InfeasibleError, match="No cohort, target, quorum and deadline"):
        plan(FLEET, **PRICES, target=38, at_most={"deadline": 2.0})
