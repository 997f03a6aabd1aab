"""Constant latencies: results by hand."""

from __future__ import annotations

import numpy as np

from cafe.latency import (
    Constant,
)


def test_all_reports_arrive_at_one_time() -> None:
    latency = Constant(2.5)
    np.testing.assert_array_equal(latency.cdf([2.4, 2.5, 2.6]), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(latency.sample(np.random.default_rng(0), 3), [2.5, 2.5, 2.5])
    assert latency.mean_below(2.4) == 0.0
    assert latency.mean_below(2.5) == 2.5
    assert latency.breaks().tolist() == [2.5]
