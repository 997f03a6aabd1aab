"""Mixtures of latencies: results by hand, and arguments that cannot be used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.latency import (
    Constant,
    Exponential,
    Latency,
    Mixture,
)
from tests.support.latencies import wrong


def test_a_mixture_is_the_weighted_mean_of_its_components() -> None:
    latency = Mixture([Exponential(1.0), Constant(2.0)], [1.0, 3.0])
    assert latency.weights == (0.25, 0.75)
    assert latency.cdf(1.9) == pytest.approx(0.25 * (1 - np.exp(-1.9)))
    assert latency.mean() == pytest.approx(0.25 + 0.75 * 2.0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Mixture([], []), "one weight per component"),
        (lambda: Mixture([Exponential(1.0)], [1.0, 2.0]), "one weight per component"),
        (lambda: Mixture([Exponential(1.0)], [0.0]), "weights must"),
        (lambda: Mixture([Exponential(1.0)], [np.nan]), "weights must"),
        (lambda: Mixture([Exponential(1.0)], wrong(["1"])), "weights must"),
        (lambda: Mixture(wrong([1.0]), [1.0]), "components must"),
        (
            lambda: Mixture([Exponential(np.ones(2)), Exponential(np.ones(3))], [1, 1]),
            "components must",
        ),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], Latency], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
