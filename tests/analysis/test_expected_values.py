"""Expected values are those of theory, for runs that start with all ages 0."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cafe.analysis.expected_values import expected_age
from cafe.analysis.run_groups import group_runs
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Constant, Exponential
from cafe.policies import agu, awu, fedavg, mcu
from cafe.report import (
    run_page,
)
from cafe.theory import expect
from tests.support.runs import Kept, Run, federation, kept, played


@pytest.mark.parametrize("target", [None, 7, 20])
@pytest.mark.parametrize("rounds", [1, 5, 40])
@pytest.mark.slow
def test_expected_age_of_a_run_that_starts_at_age_0(rounds: int, target: int | None) -> None:
    # Slow clients rarely report, so their ages are still far below the long-run age.
    who, deadline = federation(), 0.3
    theory = expect(who, quorum=6, deadline=deadline, target=target)
    found = expected_age(theory, [rounds, rounds])
    policy = mcu(quorum=6, deadline=deadline, target=target)
    (group,) = group_runs([Run(simulate(who, policy, rounds=rounds, seed=s)) for s in range(150)])
    ages = group.estimate("age")
    assert abs(ages.mean - found) < 4 * ages.error + 1e-12
    assert theory.age - ages.mean > 4 * ages.error
    assert found < theory.age


def test_expected_age_of_a_long_run_is_the_theoretical_age() -> None:
    theory = expect(federation(), quorum=6, deadline=0.3)
    assert expected_age(theory, [10**7]) == pytest.approx(theory.age, rel=1e-4)
    nobody = expect(federation(), quorum=20, deadline=1e-6)
    assert expected_age(nobody, [100]) == pytest.approx(50 * 1e-6)


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
@pytest.mark.slow
def test_theory_agrees_with_long_runs(policy: Any) -> None:
    (group,) = group_runs([played(policy, seed=s, rounds=700) for s in range(4)])
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
def test_no_expected_values_where_theory_does_not_apply(policy: Any) -> None:
    assert group_runs([played(policy, rounds=20)])[0].expected == {}


def test_no_expected_values_with_crashes_or_without_a_federation() -> None:
    who, policy = federation(), mcu(quorum=5, deadline=0.7)
    crashed = simulate(who, policy, rounds=20, crash=0.3)
    assert group_runs([Run(crashed, {}, who)])[0].expected == {}
    assert group_runs([Run(simulate(who, policy, rounds=20))])[0].expected == {}


def test_expected_values_stored_in_a_run_are_used() -> None:
    run = played(mcu(quorum=5, deadline=0.7), rounds=20)

    class Bringing(Run):
        expected = expect(federation(), quorum=5, deadline=0.7)

    brought = group_runs([Bringing(run.history)])[0].expected
    assert brought == group_runs([run])[0].expected


def test_expected_waste_of_agu_is_the_theory_of_agu() -> None:
    theory = expect(federation(), quorum=11, deadline=0.7)
    for pool, waste in (("round", theory.agu_waste), ("union", theory.agu_waste_union)):
        policy = agu(quorum=11, deadline=0.7, pool=pool)  # type: ignore[arg-type]
        found = group_runs([played(policy)])[0].expected
        assert found["waste"] == waste
        assert found["waste"] != theory.waste
        assert "processing_waste" not in found


def test_each_scenario_has_its_own_expected_values() -> None:
    history = played(mcu(quorum=5, deadline=0.7), rounds=20).history
    faster = Federation(20, Exponential(3.0))
    results = [
        Kept(history, made.provenance, who, folder=made.folder)
        for made, who in ((kept("a"), federation()), (kept("b", learner={}), faster))
    ]
    one, other = group_runs(results)
    assert one.expected["waste"] != other.expected["waste"]
    assert group_runs(results[1:])[0].expected == other.expected


@pytest.mark.slow
def test_page_explains_why_theory_cannot_calculate(tmp_path: Path) -> None:
    who = Federation.join(Federation(3, Constant(1e-6)), Federation(17, Exponential(1.0)))
    made = played(mcu(quorum=5, deadline=0.7, target=9), rounds=20)
    run_page.write(tmp_path / "page.html", [replace(made, federation=who)])
    assert "no theory. A target below" in (tmp_path / "page.html").read_text()
