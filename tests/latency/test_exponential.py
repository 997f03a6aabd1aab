"""Exponential latencies, with and without a shift: results by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.latency import (
    Exponential,
    ShiftedExponential,
)


def test_exponential_by_hand() -> None:
    latency = Exponential(2.0)
    assert latency.cdf(0.5) == pytest.approx(1 - np.exp(-1.0))
    assert latency.quantile(0.5) == pytest.approx(np.log(2.0) / 2.0)
    assert latency.mean() == 0.5
    assert latency.mean_below(0.5) == pytest.approx((1 - 2 * np.exp(-1.0)) / 2.0)
    assert latency.cdf(1e-20) == pytest.approx(2e-20)  # no cancellation
    assert latency.scaled(4.0) == Exponential(0.5)


def test_a_shift_delays_an_exponential() -> None:
    plain, later = Exponential(2.0), ShiftedExponential(1.0, 2.0)
    times = np.array([0.1, 0.5, 3.0])
    np.testing.assert_allclose(later.cdf(times + 1.0), plain.cdf(times))
    assert later.cdf(1.0) == 0.0
    assert later.mean() == 1.5
    assert later.scaled(2.0) == ShiftedExponential(2.0, 1.0)
