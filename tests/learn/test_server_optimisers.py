"""Server optimisers, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.learn.server_optimisers import Adam, Momentum, ServerOptimiser


def test_momentum_keeps_a_part_of_the_last_step() -> None:
    optimiser = Momentum(rate=0.5, momentum=0.9)
    first, moments = optimiser.step(np.array([2.0]), ())
    second, _ = optimiser.step(np.array([1.0]), moments)
    assert first.tolist() == [1.0]
    assert second.tolist() == pytest.approx([0.5 * (0.9 * 2.0 + 1.0)])


@pytest.mark.parametrize("yogi", [False, True])
def test_adam_divides_by_the_root_of_the_mean_square(yogi: bool) -> None:
    optimiser = Adam(rate=0.1, first=0.5, second=0.75, floor=0.01, yogi=yogi)
    step, (mean, square) = optimiser.step(np.array([0.2]), ())
    # Yogi: 0.0001 + 0.25 * 0.04, as the new square is the larger one.
    wanted = 0.0001 + 0.25 * 0.04 if yogi else 0.75 * 0.0001 + 0.25 * 0.04
    assert mean.tolist() == pytest.approx([0.1])
    assert square.tolist() == pytest.approx([wanted])
    assert step.tolist() == pytest.approx([0.1 * 0.1 / (wanted**0.5 + 0.01)])


@pytest.mark.parametrize("optimiser", [Momentum(), Adam(), Adam(yogi=True)], ids=repr)
def test_moments_have_the_type_of_the_update(optimiser: ServerOptimiser) -> None:
    """A run is saved with this type: a wider one would not survive."""
    step, moments = optimiser.step(np.array([0.2, 0.0], dtype=np.float32), ())
    step, moments = optimiser.step(step, moments)
    assert {array.dtype for array in (step, *moments)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Momentum(rate=0.0),
        lambda: Momentum(momentum=1.0),
        lambda: Adam(rate=-1.0),
        lambda: Adam(first=1.0),
        lambda: Adam(second=-0.1),
        lambda: Adam(floor=0.0),
    ],
)
def test_wrong_options_are_an_error(make: Callable[[], ServerOptimiser]) -> None:
    with pytest.raises(InputError, match="A server optimiser's"):
        make()
