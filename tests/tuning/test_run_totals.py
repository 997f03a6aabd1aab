"""Totals of a run: the same as its history has, and as long as was asked."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.tuning.run_totals import NoRun, RunLength, RunRequest, RunTotals, simulate_totals

FEDERATION = cafe.Federation(20, cafe.Exponential(rate=1.0))


def request(merges: float, most: int, **given: float) -> RunRequest:
    return RunRequest(FEDERATION, "mcu", given, None, RunLength(merges, most), seed=3)


def test_totals_are_those_of_the_history() -> None:
    totals = simulate_totals(request(10.0, 200, quorum=2, deadline=0.2))
    assert isinstance(totals, RunTotals)
    rounds = round(totals.amounts["rounds"])
    policy = cafe.policies.mcu(quorum=2, deadline=0.2)
    history = cafe.simulate(FEDERATION, policy, rounds=rounds, seed=3)
    assert totals.amounts["waste"] == pytest.approx(history.waste)
    assert totals.amounts["time"] == pytest.approx(history.virtual_time)
    assert totals.amounts["jobs"] == history.jobs
    assert totals.amounts["held"] == pytest.approx(0.2 * history.jobs)
    assert totals.amounts["area"] == pytest.approx(history.mean_age * history.virtual_time)
    np.testing.assert_array_equal(totals.merged, history.merged_by_client)
    assert totals.merged.mean() >= 10.0
    shorter = cafe.simulate(FEDERATION, policy, rounds=rounds - 1, seed=3)
    assert shorter.merged_by_client.mean() < 10.0


def test_a_run_ends_after_its_most_rounds_also_if_none_succeeds() -> None:
    totals = simulate_totals(request(10.0, 50, quorum=20, deadline=0.01))
    assert isinstance(totals, RunTotals)
    assert totals.amounts["rounds"] == 50
    assert totals.amounts["updates"] == 0


def test_runs_that_cannot_be_simulated() -> None:
    invalid = simulate_totals(request(1.0, 50, quorum=21, deadline=1.0))
    assert isinstance(invalid, NoRun)
    assert invalid.invalid
    absent = cafe.Federation(4, cafe.Exponential(rate=1.0), availability=0.5)
    stuck = simulate_totals(
        RunRequest(absent, "fedasync", {"concurrency": 1}, None, RunLength(9.0, 99), seed=0)
    )
    assert isinstance(stuck, NoRun)
    assert not stuck.invalid
    assert "never end" in stuck.reason
