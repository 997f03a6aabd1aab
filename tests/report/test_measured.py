"""What reports measure is what histories say, and what theory expects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cafe.analysis import repeated_runs
from cafe.analysis.repeated_runs import RATIOS, labels, parsed, repeats, spent_until
from cafe.engine import simulate
from cafe.errors import InputError
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds import History
from cafe.theory import expect
from tests.report.conftest import Run, federation, made_up, played

# What a history calls the quantities that reports name as theory does.
SAME = {
    "broadcasts": "broadcasts_per_update",
    "waste": "waste_per_update",
    "waste_per_gradient": "waste_per_gradient",
    "waste_per_time": "waste_per_time",
    "processing_waste": "processing_waste_per_update",
    "processing_waste_per_gradient": "processing_waste_per_gradient",
    "processing_waste_per_time": "processing_waste_per_time",
    "absent_waste": "absent_waste_per_update",
    "client_seconds": "client_seconds_per_update",
    "age": "mean_age",
}


@pytest.mark.parametrize(
    "policy",
    [
        mcu(quorum=11, deadline=0.7),
        mcu(quorum=5, deadline=0.7, late="keep"),
        mcu(quorum=5, deadline=0.7, target=9),
        agu(quorum=12, deadline=0.7, pool="union"),
        fedavg(fraction=0.3, deadline=1.0),
    ],
    ids=str,
)
def test_one_run_shows_what_its_history_says(policy: Any) -> None:
    run = played(policy, seed=3, rounds=80)
    (group,) = repeats([run])
    for name, attribute in SAME.items():
        assert group.estimate(name).mean == pytest.approx(getattr(run.history, attribute)), name
    share = run.history.updates / run.history.rounds
    assert group.estimate("success_probability").mean == pytest.approx(share)
    assert group.worst_age.mean == run.history.age_by_client.max()
    assert {k: v for k, v in group.fates.items() if k != "open"} == run.history.fates
    assert sum(group.fates.values()) == run.history.jobs


def test_several_runs_are_taken_together(learned: list[Run]) -> None:
    group = repeats(learned)[0]
    histories = [run.history for run in learned[:3]]
    waste, updates = sum(h.waste for h in histories), sum(h.updates for h in histories)
    found = group.estimate("waste")
    assert found.mean == pytest.approx(waste / updates)
    assert found.count == 3
    assert group.final("accuracy").tolist() == [h.accuracy for h in histories]
    each = group.by_client("weight_by_client")
    assert each.sum() == pytest.approx(1.0)
    assert each[4] == pytest.approx(np.mean([h.weight_by_client[4] / h.updates for h in histories]))


@pytest.mark.parametrize("target", [None, 7, 20])
@pytest.mark.parametrize("rounds", [1, 5, 40])
def test_the_age_expected_of_a_run_that_begins_at_age_0(rounds: int, target: int | None) -> None:
    # Slow clients are hardly ever heard: the long run's age is far away.
    who, deadline = federation(), 0.3
    theory = expect(who, quorum=6, deadline=deadline, target=target)
    found = repeated_runs._age(theory, [rounds, rounds])
    policy = mcu(quorum=6, deadline=deadline, target=target)
    (group,) = repeats([Run(simulate(who, policy, rounds=rounds, seed=s)) for s in range(150)])
    ages = group.estimate("age")
    assert abs(ages.mean - found) < 4 * ages.error + 1e-12
    assert theory.age - ages.mean > 4 * ages.error
    assert found < theory.age


def test_the_age_expected_of_a_long_run_is_theorys() -> None:
    theory = expect(federation(), quorum=6, deadline=0.3)
    assert repeated_runs._age(theory, [10**7]) == pytest.approx(theory.age, rel=1e-4)
    nobody = expect(federation(), quorum=20, deadline=1e-6)
    assert repeated_runs._age(nobody, [100]) == pytest.approx(50 * 1e-6)


@pytest.mark.parametrize(
    "policy",
    [
        mcu(quorum=11, deadline=0.7),
        awu(quorum=11, deadline=0.7, unit="rounds"),
        agu(quorum=11, deadline=0.7),
        agu(quorum=11, deadline=0.7, pool="union"),
        mcu(quorum=11, deadline=0.7, close_when_all=True),
        mcu(quorum=8, deadline=0.7, target=12),
    ],
    ids=str,
)
def test_theory_agrees_with_long_runs(policy: Any) -> None:
    (group,) = repeats([played(policy, seed=s, rounds=700) for s in range(4)])
    assert len(group.expected) >= 5
    for name, expected in group.expected.items():
        found = group.estimate(name)
        if found.error > 0:
            assert found.chance(expected) > 0.002, name
        else:
            assert found.mean == pytest.approx(expected, rel=1e-3), name


@pytest.mark.parametrize(
    "policy",
    [
        mcu(quorum=5, deadline=0.7, late="keep"),
        mcu(quorum=2, deadline=0.7, cohort=5),
        fedavg(deadline=0.7),
    ],
    ids=str,
)
def test_nothing_is_expected_where_theory_does_not_apply(policy: Any) -> None:
    assert repeats([played(policy, rounds=20)])[0].expected == {}


def test_nothing_is_expected_with_crashes_or_without_a_federation() -> None:
    who, policy = federation(), mcu(quorum=5, deadline=0.7)
    crashed = simulate(who, policy, rounds=20, crash=0.3)
    assert repeats([Run(crashed, {}, who)])[0].expected == {}
    assert repeats([Run(simulate(who, policy, rounds=20))])[0].expected == {}


def test_what_a_run_brings_along_is_expected() -> None:
    run = played(mcu(quorum=5, deadline=0.7), rounds=20)

    class Bringing(Run):
        expected = expect(federation(), quorum=5, deadline=0.7)

    brought = repeats([Bringing(run.history)])[0].expected
    assert brought == repeats([run])[0].expected


def test_agu_is_expected_to_waste_what_theory_says_of_agu() -> None:
    theory = expect(federation(), quorum=11, deadline=0.7)
    for pool, waste in (("round", theory.agu_waste), ("union", theory.agu_waste_union)):
        policy = agu(quorum=11, deadline=0.7, pool=pool)  # type: ignore[arg-type]
        found = repeats([played(policy)])[0].expected
        assert found["waste"] == waste
        assert found["waste"] != theory.waste
        assert "processing_waste" not in found


def test_runs_are_grouped_by_policy_and_sorted_by_seed(learned: list[Run]) -> None:
    groups = repeats([*learned[::-1]])
    assert [group.seeds for group in groups] == [[0, 1, 2]] * 3
    assert [parsed(group.policy)[0] for group in groups] == ["agu", "awu", "mcu"]
    assert groups[-1].label == "mcu, quorum 11, deadline 0.7"


def test_labels() -> None:
    assert labels(["mcu(quorum=1, deadline=17.496123)"]) == ["mcu, quorum 1, deadline 17.5"]
    alike = ["mcu(quorum=1, deadline=0.50001)", "mcu(quorum=1, deadline=0.50002)"]
    assert labels(alike) == alike
    assert labels(["something else"]) == ["something else"]
    run = made_up("mcu(quorum=1, deadline=2)", 0, 9, 4)
    told = [Run(run, {"label": label}) for label in ("patient", "mcu")]
    assert [g.label for g in repeats(told)] == ["patient", "mcu, quorum 1, deadline 2"]
    other = replace(run, policy="mcu(quorum=1, deadline=3)")
    twice = [Run(history, {"label": "patient"}) for history in (run, other)]
    assert [g.label for g in repeats(twice)] == [
        "patient: mcu, quorum 1, deadline 2",
        "patient: mcu, quorum 1, deadline 3",
    ]


def test_no_runs_are_refused() -> None:
    with pytest.raises(InputError, match="no runs"):
        repeats([])


def test_what_was_spent_until_an_accuracy() -> None:
    history = made_up("mcu(quorum=1, deadline=2)", 0, 100, 4)
    spent = spent_until(history, 0.45)
    assert spent.rounds == 50
    assert spent.time == history.by_round["closed"][49]
    assert spent.waste == pytest.approx(history.by_round["waste"][:50].sum())
    assert spent.processing_waste == pytest.approx(history.by_round["processing_waste"][:50].sum())
    assert spent.work == pytest.approx(history.by_round["work"][:50].sum())
    assert spent_until(history, 0.95).time == float("inf")
    assert spent_until(replace(history, curve=None), 0.1).time == float("inf")


def test_the_accuracy_that_every_run_reached() -> None:
    def reaching(top: float) -> Run:
        history = made_up("mcu(quorum=1, deadline=2)", 0, 10, 4)
        assert history.curve is not None
        return Run(replace(history, curve=replace(history.curve, accuracy=np.full(10, top))))

    assert repeated_runs.common_accuracy(repeats([reaching(0.93), reaching(0.87)])) == 0.85
    assert repeated_runs.common_accuracy(repeats([reaching(0.9)])) == 0.9
    assert repeated_runs.common_accuracy(repeats([reaching(0.02)])) is None
    assert repeated_runs.common_accuracy(repeats([reaching(float("nan"))])) is None


def test_ratios_are_named_as_in_theory() -> None:
    extra = {"client_seconds_per_gradient", "client_seconds_per_time"}
    theory = expect(federation(), quorum=5, deadline=0.7)
    assert {name for name in RATIOS if not hasattr(theory, name)} == extra


def test_a_run_without_rounds_is_no_mistake() -> None:
    history = made_up("mcu(quorum=1, deadline=2)", 0, 9, 4)
    empty: History = replace(
        history,
        by_round={name: column[:0] for name, column in history.by_round.items()},
        age_by_client=np.full(4, np.nan),
        weight_by_client=np.full(4, np.nan),
        curve=None,
    )
    (group,) = repeats([Run(empty, {}, federation(4), finished=False)])
    assert np.isnan(group.estimate("waste").mean)
    assert group.by_client("age_by_client").size == 0
    assert group.expected == {}
    assert group.unfinished == 1
