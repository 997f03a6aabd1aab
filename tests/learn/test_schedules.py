"""The decaying learning rate."""

from __future__ import annotations

import pytest

from cafe.errors import InputError
from cafe.learn.schedules import LearningRate


def test_the_rate_of_each_round() -> None:
    assert LearningRate(beta=2.0, gamma=3.0)([1, 2, 7]).tolist() == [0.5, 0.4, 0.2]


@pytest.mark.parametrize(("beta", "gamma"), [(0.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, -2.0)])
def test_rates_must_be_positive(beta: float, gamma: float) -> None:
    with pytest.raises(InputError, match="beta > 0 and gamma > -1"):
        LearningRate(beta, gamma)
