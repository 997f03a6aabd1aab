"""Weibull latencies: results by hand, and against the exponential."""

from __future__ import annotations

import numpy as np

from cafe.latency import (
    Exponential,
    Weibull,
)


def test_shape_1_is_the_exponential() -> None:
    times = np.array([0.1, 1.0, 5.0])
    weibull, exponential = Weibull(1.0, 0.5), Exponential(2.0)
    for name in ("cdf", "sf", "logsf", "logpdf", "mean_below"):
        np.testing.assert_allclose(getattr(weibull, name)(times), getattr(exponential, name)(times))


def test_the_scale_is_where_63_per_cent_have_reported() -> None:
    latency = Weibull(np.array([0.5, 1.0, 3.0]), 2.0)
    np.testing.assert_allclose(latency.cdf(2.0), 1 - np.exp(-1.0))
    np.testing.assert_allclose(latency.mean()[:2], [4.0, 2.0])
