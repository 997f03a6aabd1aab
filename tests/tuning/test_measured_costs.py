"""Costs from runs: against sums over the binomial distribution, closed forms, and cases by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import pytest

import cafe
from cafe.latency.base import Floats
from cafe.planner import Prices, ToAccuracy
from cafe.tuning.measured_costs import (
    cost_of,
    inverse_participation,
    jackknife,
    mean_inverse,
    quantity_of,
    spread_of_merges,
    total,
    trimmed_mean,
)
from cafe.tuning.run_totals import RunLength, RunRequest, RunTotals, simulate_totals

FLEETS = {
    "equal exponential": cafe.Federation(60, cafe.Exponential(rate=1.0)),
    "unequal log-normal": cafe.Federation(30, cafe.LogNormal(np.linspace(0, 1.5, 30), 0.5)),
    "phones": cafe.phones(30, seed=1).at_steps(1),
}
SHARES = {"equal exponential": 0.2, "unequal log-normal": 0.6, "phones": 0.999}


def fake(merged: Sequence[float], seed: int = 0, **amounts: float) -> RunTotals:
    return RunTotals(amounts, np.array(merged, dtype=float), seed)


def some_runs(merged: Floats, rounds: float) -> list[RunTotals]:
    return [fake(row.tolist(), seed, rounds=rounds) for seed, row in enumerate(merged)]


def runs_of(fleet: str, deadline: float, merges: float, seeds: range) -> list[RunTotals]:
    given = {"quorum": 1, "deadline": deadline}
    found = []
    for seed in seeds:
        length = RunLength(merges, 400)
        totals = simulate_totals(RunRequest(FLEETS[fleet], "mcu", given, None, length, seed))
        assert isinstance(totals, RunTotals)
        found.append(totals)
    return found


@pytest.mark.parametrize("rounds", [30, 100])
@pytest.mark.parametrize("expected", [5.0, 10.0])
def test_inverse_participation_is_nearly_unbiased(rounds: int, expected: float) -> None:
    """Summed over the exact distribution of the merges; the naive estimate is far off."""
    p = expected / rounds
    count = np.arange(rounds + 1.0)
    mass = np.array([comb(rounds, k) * p**k * (1 - p) ** (rounds - k) for k in range(rounds + 1)])
    mean = float(np.sum(mass * inverse_participation(count, float(rounds), 1.0)))
    assert mean == pytest.approx(1 / p, rel=np.exp(-expected))
    with np.errstate(divide="ignore"):
        naive = float(np.sum(mass[1:] * rounds / count[1:]) / mass[1:].sum())
    assert naive > (1 + 0.7 / expected) / p


def test_clients_that_take_turns_have_no_bias_to_correct() -> None:
    merged = np.full((4, 10), 7.0)  # each of ten clients in every tenth round
    assert spread_of_merges(some_runs(merged, 70.0)) == 0.05
    found = inverse_participation(merged.sum(axis=0), 280.0, 0.05)
    assert found == pytest.approx(10.0, rel=0.01)


def test_spread_of_independent_rounds_is_one() -> None:
    rng = np.random.default_rng(1)
    merged = rng.binomial(40, rng.uniform(0.1, 0.9, 500), size=(8, 500)).astype(float)
    runs = some_runs(merged, 40.0)
    assert spread_of_merges(runs) == pytest.approx(1.0, abs=0.06)
    assert spread_of_merges(runs[:1]) == 1.0
    assert spread_of_merges(some_runs(np.full((4, 3), 40.0), 40.0)) == 1.0


def test_trimmed_mean_by_hand() -> None:
    assert trimmed_mean(np.arange(10.0), -np.arange(10.0)) == pytest.approx(4.0)
    # With 5 clients, half a client is left out: (0 + 1 + 2 + 3 + 4 / 2) / 4.5.
    assert trimmed_mean(np.arange(5.0), -np.arange(5.0)) == pytest.approx(8 / 4.5)


def test_unlucky_clients_are_not_left_out() -> None:
    """With equal clients the mean is 1 / p, although a tenth of the clients is left out."""
    rng = np.random.default_rng(2)
    found, same_seeds = [], []
    for _ in range(200):
        merged = rng.binomial(50, 0.3, size=(4, 40))
        runs = [fake(row, seed, rounds=50.0) for seed, row in enumerate(merged)]
        found.append(mean_inverse(runs))
        same = [fake(row, 0, rounds=50.0) for row in merged]  # no second half
        same_seeds.append(mean_inverse(same))
    assert np.mean(found) == pytest.approx(1 / 0.3, abs=4 * np.std(found) / 200**0.5)
    assert np.mean(same_seeds) < 0.98 / 0.3


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("spend", ["time", "client-seconds"])
def test_time_per_full_update_agrees_with_the_closed_form(fleet: str, spend: str) -> None:
    federation = FLEETS[fleet]
    goal = ToAccuracy("time" if spend == "time" else "client-seconds").completed(federation)
    deadline = cafe.planner.pooled_quantile(federation, SHARES[fleet])
    expected = goal.cost(cafe.expect(federation, quorum=1, deadline=deadline))
    runs = runs_of(fleet, deadline, 10.0, range(32))
    found = jackknife(runs, lambda some: cost_of(goal, some, asynchronous=False)).estimate
    assert abs(found.mean - expected) < 3.5 * found.error + 1e-6 * expected
    assert found.error < 0.05 * expected


@pytest.mark.parametrize("fleet", FLEETS)
def test_j_of_short_runs_agrees_with_the_closed_form(fleet: str) -> None:
    """Without the correction of the age, it would be lower by far more than the interval."""
    federation, goal = FLEETS[fleet], Prices(0.1, 1.0)
    deadline = cafe.planner.pooled_quantile(federation, SHARES[fleet])
    expected = goal.cost(cafe.expect(federation, quorum=1, deadline=deadline))
    runs = runs_of(fleet, deadline, 6.0, range(32))
    found = jackknife(runs, lambda some: cost_of(goal, some, asynchronous=False)).estimate
    assert abs(found.mean - expected) < max(4 * found.error, 0.02 * expected)
    age = quantity_of("age", runs)
    assert age - total(runs, "area") / total(runs, "time") > 0


def test_both_rules_of_the_overhead_are_equal_if_all_work_until_the_deadline() -> None:
    amounts = {"rounds": 10.0, "updates": 10.0, "time": 20.0, "jobs": 40.0, "work": 80.0}
    runs = [fake([10.0] * 4, seed, held=80.0, **amounts) for seed in range(4)]
    goal = ToAccuracy("time", 1.0, overhead=0.5)
    by_round = cost_of(goal, runs, asynchronous=False)
    assert by_round == pytest.approx(2.5)  # all clients in every round: 2 s and 0.5 s
    assert cost_of(goal, runs, asynchronous=True) == pytest.approx(by_round)
    work = ToAccuracy("client-seconds", 1.0, overhead=0.5)
    assert cost_of(work, runs, asynchronous=True) == pytest.approx(8.0 + 4 * 0.5)
    idle = cost_of(work, runs, asynchronous=False)
    assert idle == pytest.approx(8.0 + 0.05 * 8.0 + 4 * 0.5)


def test_fedasync_with_constant_times_costs_what_a_hand_counts() -> None:
    """Four clients need one second each: every client is merged once a second."""
    federation = cafe.Federation(4, cafe.Constant(1.0))
    request = RunRequest(
        federation, "fedasync", {"concurrency": 4}, None, RunLength(200.0, 800), seed=0
    )
    totals = simulate_totals(request)
    assert isinstance(totals, RunTotals)
    runs = [RunTotals(totals.amounts, totals.merged, seed) for seed in range(4)]
    cost = cost_of(ToAccuracy("time", 1.0, overhead=0.25), runs, asynchronous=True)
    # Twice 1.25 s for 1 / rate, less the length of one round, a quarter of 1.25 s.
    assert cost == pytest.approx(2 * 1.25 - 1.25 / 4, rel=0.01)


def test_no_update_costs_everything() -> None:
    runs = [fake([0.0] * 3, seed, updates=0.0, rounds=9.0, time=9.0) for seed in range(4)]
    for goal in (Prices(1, 1), ToAccuracy("time", 1.0, 0.1)):
        assert cost_of(goal, runs, asynchronous=False) == np.inf


def test_jackknife_of_a_mean_is_the_usual_standard_error() -> None:
    values = np.array([1.0, 4.0, 2.0, 7.0])
    runs = [fake([], seed, x=value) for seed, value in enumerate(values)]
    found = jackknife(runs, lambda some: total(some, "x") / len(some))
    assert found.by_run == pytest.approx(values)
    assert found.estimate.error == pytest.approx(values.std(ddof=1) / 2)
    assert np.isinf(jackknife(runs, lambda some: np.inf if len(some) < 4 else 1.0).by_run).all()
