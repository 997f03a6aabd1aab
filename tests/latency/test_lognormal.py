"""Log-normal latencies: results by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.latency import (
    LogNormal,
)


def test_the_median_and_the_mean() -> None:
    latency = LogNormal(mu=1.0, sigma=0.5, shift=2.0)
    assert latency.quantile(0.5) == pytest.approx(2.0 + np.e)
    assert latency.mean() == pytest.approx(2.0 + np.exp(1.125))
    assert latency.cdf(2.0) == 0.0
    assert latency.logpdf(1.0) == -np.inf


def test_scaling_adds_to_mu() -> None:
    assert LogNormal(0.0, 0.5, 1.0).scaled(np.e) == LogNormal(1.0, 0.5, np.e)
