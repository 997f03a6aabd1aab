"""Uniform latencies: results by hand, and arguments that cannot be used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.latency import (
    Latency,
    Uniform,
)


def test_the_cdf_is_a_straight_line() -> None:
    latency = Uniform(1.0, 3.0)
    np.testing.assert_allclose(latency.cdf([0.5, 1.0, 2.0, 3.0, 4.0]), [0, 0, 0.5, 1, 1])
    assert latency.mean() == 2.0
    assert latency.mean_below(2.0) == pytest.approx(0.75)  # 1.5 with probability 1/2
    assert latency.breaks().tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Uniform(2.0, 1.0), "high must be above its low"),
        (lambda: Uniform(np.array([0.0, 2.0]), 2.0), "high must be above its low"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], Latency], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
