"""Kinds of several families in one latency: results by hand, and arguments that cannot be used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.latency import (
    Constant,
    Exponential,
    Latency,
    Various,
)
from tests.support.latencies import wrong


def test_kinds_belong_to_their_parts_in_order() -> None:
    latency = Various([Exponential(np.array([1.0, 2.0])), Constant(3.0)])
    assert latency.kinds == 3
    np.testing.assert_allclose(latency.mean(), [1.0, 0.5, 3.0])
    taken = latency.take(np.array([1, 2]))
    assert isinstance(taken, Various)
    np.testing.assert_allclose(taken.mean(), [0.5, 3.0])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Various([]), "parts must"),
        (lambda: Various(wrong([1.0])), "parts must"),
        (lambda: Various([Exponential(np.ones(3))]).take(np.array([1, 0])), "increasing order"),
        (lambda: Various([Exponential(np.ones(3))]).take(np.array([0, 3])), "from 0 to 2"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], Latency], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
