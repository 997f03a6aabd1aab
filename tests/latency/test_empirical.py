"""Empirical latencies: results by hand, and arguments that cannot be used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.latency import (
    Empirical,
    Latency,
)


def test_the_cdf_jumps_at_the_observed_times_by_their_weights() -> None:
    latency = Empirical([2.0, 1.0, 4.0, 2.0], [1.0, 2.0, 1.0, 4.0])
    np.testing.assert_allclose(latency.cdf([0.9, 1.0, 2.0, 4.0]), [0, 0.25, 0.875, 1])
    np.testing.assert_allclose(latency.quantile([0.25, 0.26, 0.9]), [1.0, 2.0, 4.0])
    assert latency.mean() == pytest.approx((2 * 1 + 5 * 2 + 1 * 4) / 8)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Empirical([]), "times must"),
        (lambda: Empirical([1.0, 0.0]), "times must"),
        (lambda: Empirical([1.0, np.inf]), "times must"),
        (lambda: Empirical([[1.0], [2.0]]), "times must"),
        (lambda: Empirical(["1.0"]), "times must"),
        (lambda: Empirical([1.0, 2.0], [1.0]), "weights must"),
        (lambda: Empirical([1.0, 2.0], [1.0, 0.0]), "weights must"),
        (lambda: Empirical([1.0, 2.0], [1.0, np.nan]), "weights must"),
        (lambda: Empirical([1.0, 2.0], ["1", "2"]), "weights must"),
        (lambda: Empirical([1.0], kinds=0), "kinds must"),
        (
            lambda: Empirical([1.0], kinds=2).scaled(np.array([1.0, 2.0])),
            "factor must be one number",
        ),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], Latency], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
