"""The Kaplan-Meier estimate, by hand, and the merging of neighbouring times."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cafe.fitting.censored_sample import CensoredSample, WeightedTimes
from cafe.fitting.fit import Fit, fit
from tests.support.fitting import NAN, SMOOTH, draw, fit_one


def test_merging_close_times_changes_an_estimate_by_far_less_than_its_standard_error() -> None:
    times, deadline = draw(SMOOTH["weibull"], 40_000, 0.3, 0)
    found = fit_one("weibull", times, deadline)  # merged to 4000 report times
    theirs = scipy.stats.weibull_min.fit(
        scipy.stats.CensoredData(
            uncensored=times[~np.isnan(times)], right=np.full(np.isnan(times).sum(), deadline)
        ),
        floc=0,
    )
    exact = {"shape": theirs[0], "scale": theirs[2]}
    for name, error in found.standard_errors.items():
        assert abs(found.parameters[name] - exact[name]) < 0.02 * error


def test_kaplan_meier_without_misses_is_the_share_of_longer_times() -> None:
    times = np.random.default_rng(0).integers(1, 20, 200) / 4
    at, survival, error = fit(times, families="exponential").kaplan_meier()
    np.testing.assert_array_equal(at, np.unique(times))
    share = np.array([np.mean(times > t) for t in at])
    np.testing.assert_allclose(survival, share, atol=1e-12)
    np.testing.assert_allclose(error, np.sqrt(share * (1 - share) / 200), atol=1e-12)


def by_hand() -> Fit:
    """Reports at 1, 3, 3 and 5; misses at 2, 3 and 6."""
    return fit(
        [1.0, NAN, 3.0, 3.0, NAN, 5.0, NAN],
        deadline=[9.0, 2.0, 9.0, 9.0, 3.0, 9.0, 6.0],
        families="exponential",
    )


def test_kaplan_meier_by_hand() -> None:
    at, survival, error = by_hand().kaplan_meier()
    # At 1 seven are waited for, at 3 five (the one missed at 3 among them), at 5 two.
    expected = np.array([6 / 7, 6 / 7 * 3 / 5, 6 / 7 * 3 / 5 / 2])
    assert at.tolist() == [1.0, 3.0, 5.0]
    np.testing.assert_allclose(survival, expected)
    terms = np.cumsum([1 / (7 * 6), 2 / (5 * 3), 1 / (2 * 1)])
    np.testing.assert_allclose(error, expected * np.sqrt(terms))


def test_empirical_latency_agrees_with_kaplan_meier() -> None:
    found = by_hand()
    latency, availability = found.empirical()
    at, survival, _ = found.kaplan_meier()
    assert availability == pytest.approx(1 - 9 / 35)
    np.testing.assert_allclose(availability * latency.cdf(at), 1 - survival)
    assert fit([1.0, 2.0]).empirical()[1] == 1.0


def test_distance_by_hand() -> None:
    found = by_hand().best
    rate = 4 / (1 + 2 + 3 + 3 + 3 + 5 + 6)
    left, right = np.exp(-rate * np.array([1.0, 3.0, 5.0])), np.array([6 / 7, 18 / 35, 9 / 35])
    gaps = [*np.abs(right - left), *np.abs([1.0, 6 / 7, 18 / 35] - left)]
    gaps.append(abs(9 / 35 - np.exp(-rate * 6)))
    assert found.parameters["rate"] == pytest.approx(rate)
    assert found.distance == pytest.approx(max(gaps))


def test_some_clients_are_evenly_spaced_and_numbered_anew() -> None:
    """Of clients 0 to 4, three are 0, 2 and 4; client 4 has missed a deadline."""
    reports = WeightedTimes(np.array([1.0, 2.0, 3.0]), np.ones(3), np.array([0, 1, 2]))
    misses = WeightedTimes(np.array([9.0]), np.array([2.0]), np.array([4]))
    sample = CensoredSample(reports, misses)
    some, number = sample.of_some_clients(5, 3)
    assert number == 3
    assert some.reports.seconds.tolist() == [1.0, 3.0]
    assert some.reports.code.tolist() == [0, 1]
    assert (some.misses.code.tolist(), some.misses.weight.tolist()) == ([2], [2.0])
    assert sample.of_some_clients(5, 5) == (sample, 5)
    silent = CensoredSample(WeightedTimes(np.array([2.0]), np.ones(1), np.array([1])), misses)
    assert silent.of_some_clients(5, 3) == (silent, 5)
