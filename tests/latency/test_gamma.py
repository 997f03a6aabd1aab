"""Gamma latencies: against the exponential, and in the far tail."""

from __future__ import annotations

import numpy as np

from cafe.latency import (
    Exponential,
    Gamma,
)


def test_shape_1_is_the_exponential() -> None:
    times = np.array([0.1, 1.0, 5.0, 50.0])
    gamma, exponential = Gamma(1.0, 0.5), Exponential(2.0)
    for name in ("cdf", "sf", "logsf", "logpdf", "mean_below"):
        np.testing.assert_allclose(getattr(gamma, name)(times), getattr(exponential, name)(times))


def test_log_survival_is_precise_where_the_survival_underflows() -> None:
    # With shape 2 it is log(1 + x) - x.
    x = np.array([600.0, 800.0, 5000.0])
    np.testing.assert_allclose(Gamma(2.0, 1.0).logsf(x), np.log1p(x) - x, rtol=1e-9)
