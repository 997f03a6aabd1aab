"""Means and errors, compared with many repetitions."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.analysis.statistics import BLOCKS, Estimate, blocks, mean, paired, ratio, ratio_values


def coverage(estimates: list[Estimate], truth: float) -> float:
    """How often a 95% interval holds the truth."""
    return float(np.mean([abs(e.mean - truth) <= e.interval() for e in estimates]))


def test_intervals_of_few_values_have_nominal_coverage() -> None:
    rng = np.random.default_rng(1)
    found = [mean(rng.normal(3.0, 2.0, 4)) for _ in range(2000)]
    # With 4 values a normal interval would hold it 86% of the time.
    assert coverage(found, 3.0) == pytest.approx(0.95, abs=0.015)


def test_p_values_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(2)
    chances = np.array([mean(rng.normal(3.0, 2.0, 4)).chance(3.0) for _ in range(2000)])
    for level in (0.05, 0.3, 0.7):
        assert np.mean(chances < level) == pytest.approx(level, abs=0.035)


def test_ratio_of_sums_is_unbiased_where_a_mean_of_ratios_is_not() -> None:
    rng = np.random.default_rng(3)
    # Waste over updates, a pair per block of rounds: failed rounds waste much, and give no update.
    updates = rng.binomial(8, 0.4, size=(1500, 20))
    wastes = 10.0 * (8 - updates) + 2.0 * updates + rng.normal(0, 3, updates.shape)
    truth = (10.0 * 4.8 + 2.0 * 3.2) / 3.2
    found = [ratio(w, u) for w, u in zip(wastes, updates, strict=True)]
    assert coverage(found, truth) == pytest.approx(0.95, abs=0.025)
    means = np.array([e.mean for e in found])
    errors = np.array([e.error for e in found])
    assert np.median(errors) == pytest.approx(means.std(), rel=0.08)
    with np.errstate(divide="ignore"):
        naive = (wastes / updates).mean(axis=1)
    off, off_naive = abs(np.median(means) - truth), abs(np.median(naive) - truth)
    assert off < 0.02 * truth < off_naive


def test_mean_of_ratio_values_is_the_ratio() -> None:
    over, under = np.array([3.0, 5.0, 1.0]), np.array([1.0, 0.0, 2.0])
    assert ratio_values(over, under).mean() == pytest.approx(3.0)
    assert ratio([4.0], [2.0]).mean == 2.0


@pytest.mark.parametrize(("over", "expected"), [(5.0, float("inf")), (0.0, float("nan"))])
def test_ratio_with_a_denominator_of_zero(over: float, expected: float) -> None:
    found = ratio([over, over], [0.0, 0.0])
    assert found.mean == pytest.approx(expected, nan_ok=True)
    assert np.isnan([found.error, found.off_by(1.0), found.chance(1.0), found.interval()]).all()


def test_blocks_account_for_autocorrelation() -> None:
    rng, steps, memory = np.random.default_rng(4), 4000, 0.9
    shocks = rng.normal(size=(200, steps))
    series = np.empty_like(shocks)
    series[:, 0] = shocks[:, 0] / (1 - memory**2) ** 0.5
    for i in range(1, steps):
        series[:, i] = memory * series[:, i - 1] + shocks[:, i]
    true_error = float(series.mean(axis=1).std())
    by_blocks = [ratio(blocks(row), blocks(np.ones(steps))) for row in series]
    assert np.mean([e.error for e in by_blocks]) == pytest.approx(true_error, rel=0.15)
    assert coverage(by_blocks, 0.0) == pytest.approx(0.95, abs=0.05)
    naive = float(np.mean([mean(row).error for row in series]))
    assert naive < true_error / 3


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 7, 39, 40, 41, 1000])
def test_sum_of_blocks_is_the_total(rounds: int) -> None:
    column = np.arange(1.0, rounds + 1)
    found = blocks(column)
    assert found.sum() == pytest.approx(column.sum())
    assert len(found) == max(1, min(BLOCKS, rounds // 2))


def test_paired_differences_cancel_shared_noise() -> None:
    rng = np.random.default_rng(5)
    found, apart = [], []
    for _ in range(1000):
        shared = rng.normal(0, 10, 5)
        first, second = shared + rng.normal(1, 1, 5), shared + rng.normal(0, 1, 5)
        found.append(paired(first, second))
        apart.append((mean(first).error ** 2 + mean(second).error ** 2) ** 0.5)
    assert coverage(found, 1.0) == pytest.approx(0.95, abs=0.02)
    assert np.mean([e.error for e in found]) < np.mean(apart) / 5
    assert np.isnan(paired([np.inf, 1.0], [np.inf, 1.0]).mean)


def test_error_of_one_value_or_of_equal_values() -> None:
    assert np.isnan(mean([2.0]).error)
    assert np.isnan(mean([]).mean)
    assert mean([0.1 + 0.2, 0.3]).error == 0.0  # a rounding error does not count as spread
    assert np.isnan(mean([0.3, 0.3]).off_by(0.4))
    assert mean([1.0, np.inf]).mean == np.inf
    assert mean([1.0, 3.0]).off_by(4.0) == pytest.approx(-2.0)
