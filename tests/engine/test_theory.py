"""What the engine measures is what the formulas expect, within its own standard error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import agu, awu, mcu
from cafe.rounds import History, Policy

SEEDS, ROUNDS = 10, 500


def runs(
    who: cafe.Federation, policy: Policy, seeds: int = SEEDS, rounds: int = ROUNDS
) -> list[History]:
    return [cafe.simulate(who, policy, rounds=rounds, seed=seed) for seed in range(seeds)]


def check(measured: Sequence[float], expected: float, errors: float = 6.0) -> None:
    """The mean over seeds lies within six standard errors: Student's t with 9, p = 2e-4."""
    mean = np.mean(measured)
    error = np.std(measured, ddof=1) / np.sqrt(len(measured))
    assert abs(mean - expected) <= errors * error + 1e-6 * abs(expected), (mean, expected, error)
    assert error < 0.1 * abs(expected)


def check_all(histories: Sequence[History], expected: cafe.theory.Expectation) -> None:
    check([h.broadcasts_per_update for h in histories], expected.broadcasts)
    check([h.waste_per_update for h in histories], expected.waste)
    check([h.processing_waste_per_update for h in histories], expected.processing_waste)
    check([h.waste_per_gradient for h in histories], expected.waste_per_gradient)
    check([h.waste_per_time for h in histories], expected.waste_per_time)
    check([h.client_seconds_per_update for h in histories], expected.client_seconds)
    check([h.virtual_time / h.rounds for h in histories], expected.round_duration)
    check([h.mean_age for h in histories], expected.age)


@pytest.mark.parametrize(
    ("clients", "quorum", "deadline"),
    [(100, 39, 0.5), (50, 1, 0.05), (7, 3, 0.4), (1, 1, 0.7), (30, 29, 4.0)],
)
@pytest.mark.slow
def test_equal_clients_agree_with_theory(clients: int, quorum: int, deadline: float) -> None:
    who = cafe.Federation(clients, cafe.Exponential(1.0))
    histories = runs(who, mcu(quorum=quorum, deadline=deadline))
    check_all(histories, cafe.expect(who, quorum=quorum, deadline=deadline))


@pytest.mark.parametrize(("target", "quorum"), [(20, 10), (12, 12)])
@pytest.mark.slow
def test_rounds_that_close_early_agree_with_theory(target: int, quorum: int) -> None:
    who = cafe.Federation(20, cafe.Gamma(shape=2.0, scale=0.5))
    histories = runs(who, mcu(quorum=quorum, deadline=1.2, target=target))
    check_all(histories, cafe.expect(who, quorum=quorum, deadline=1.2, target=target))
    all_in = mcu(quorum=quorum, deadline=1.2, close_when_all=True)
    if target == who.clients:
        assert runs(who, all_in, 1)[0].virtual_time == histories[0].virtual_time


@pytest.mark.parametrize(("quorum", "deadline"), [(1, 8.0), (35, 15.0)])
@pytest.mark.slow
def test_phones_agree_with_theory(quorum: int, deadline: float) -> None:
    """The age and participation of every phone agree too, with as many outliers as expected."""
    who = cafe.phones(60, seed=3, examples=20)
    who = cafe.Federation(60, who.latency, 0.9, who.examples, who.kind)
    expected = cafe.expect(who, quorum=quorum, deadline=deadline)
    reached = expected.participation_by_client > 0.02
    assert reached.sum() > 20
    histories = runs(who, mcu(quorum=quorum, deadline=deadline))
    check([h.broadcasts_per_update for h in histories], expected.broadcasts)
    check([h.waste_per_update for h in histories], expected.waste)
    check([h.processing_waste_per_update for h in histories], expected.processing_waste)
    assert expected.absent_waste is not None
    check([h.absent_waste_per_update for h in histories], expected.absent_waste)
    for measured, by_client in (
        ([h.merged_by_client / h.rounds for h in histories], expected.participation_by_client),
        ([h.weight_by_client / h.rounds for h in histories], expected.share_by_client),
        ([h.age_by_client for h in histories], expected.age_by_client),
    ):
        values = np.array(measured)[:, reached]
        error = values.std(axis=0, ddof=1) / np.sqrt(SEEDS)
        z = (values.mean(axis=0) - by_client[reached]) / np.maximum(error, 1e-12)
        z = z[error > 1e-12]
        assert np.abs(z).max() < 7  # Student's t with 9 degrees of freedom, sixty times
        assert np.median(np.abs(z)) < 1.4


@pytest.mark.parametrize("pool", ["round", "union"])
@pytest.mark.slow
def test_aggregated_gradients_waste_less(pool: str) -> None:
    who = cafe.Federation(40, cafe.Exponential(1.0))
    histories = runs(who, agu(quorum=16, deadline=0.4, pool=pool))  # type: ignore[arg-type]
    expected = cafe.expect(who, quorum=16, deadline=0.4)
    waste = expected.agu_waste if pool == "round" else expected.agu_waste_union
    assert waste is not None
    check([h.waste_per_update for h in histories], waste)
    check([h.broadcasts_per_update for h in histories], expected.broadcasts)
    if pool == "round":
        check([h.mean_age for h in histories], expected.age)


@pytest.mark.slow
def test_unbiased_weights_give_every_client_the_same_mean_coefficient() -> None:
    """The weight is the number of rounds since a client was last merged, divided by N.

    At every merge, the sum of a client's coefficients is the number of rounds so far divided by N.
    So its mean coefficient is 1/N in the long run, even if it reports rarely. If the coefficients
    of a round are divided by their sum instead, they are biased.
    """
    rates = np.repeat([2.5, 0.15, 0.8], 4)
    who = cafe.Federation.exponential(rates, np.linspace(1.0, 0.6, 12))
    lean = {}
    for weight in ("unbiased", "linear", "paper"):
        run = Run(who, awu(deadline=1.0, weight=weight), seed=1)
        for _ in range(4000):
            run.step()
        if weight == "unbiased":
            np.testing.assert_allclose(run.books.weight * 12, run.ledger.last_round + 1.0)
        lean[weight] = np.abs(run.books.weight * 12 / 4000 - 1).max()
    assert lean["unbiased"] < 0.02
    assert lean["linear"] > 0.1
    assert lean["paper"] > 0.3


@pytest.mark.slow
def test_shares_of_unequal_clients_agree_with_theory() -> None:
    """MCU favours the fast clients, by the amount that the formula predicts."""
    who = cafe.Federation.exponential(np.array([3.0, 3.0, 0.3, 0.3, 0.3, 1.0]))
    histories = runs(who, mcu(quorum=2, deadline=0.6))
    expected = cafe.expect(who, quorum=2, deadline=0.6)
    for client in range(6):
        check(
            [h.weight_by_client[client] / h.rounds for h in histories],
            expected.share_by_client[client],
        )


@pytest.mark.slow
def test_cohorts_reduce_participation_like_availability() -> None:
    """A cohort of c out of N is like an availability of c / N for one client's chances."""
    who = cafe.Federation(50, cafe.Exponential(1.0))
    histories = runs(who, mcu(quorum=1, deadline=0.5, cohort=10))
    check([h.merged_by_client.sum() / h.rounds for h in histories], 10 * (1 - np.exp(-0.5)))
    merged = np.sum([h.merged_by_client for h in histories], axis=0)
    assert merged.std() < 3 * np.sqrt(merged.mean())


@pytest.mark.slow
def test_late_jobs_that_are_kept_are_merged_later() -> None:
    who = cafe.Federation(30, cafe.Exponential(1.0))
    dropped, kept = (
        cafe.simulate(who, mcu(quorum=1, deadline=0.5, late=late), rounds=2000, seed=1)
        for late in ("drop", "keep")
    )
    assert dropped.fates["late"] > 0
    assert kept.fates["late"] == 0
    assert kept.waste == 0
    assert kept.fates["stale"] > 0
    # Memoryless: a client that runs on reports by the next deadline with the same probability.
    assert kept.reports_used / kept.rounds == pytest.approx(30 * (1 - np.exp(-0.5)), rel=0.02)
