"""Starting points: near the truth without misses, and gradients that agree with differences."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.observations import Observations
from cafe.fitting.optimisation import gradient_and_hessian
from cafe.fitting.starts import (
    StartingPoints,
    exponential_starts,
    gamma_starts,
    lognormal_starts,
    mixture_starts,
    weibull_starts,
)
from tests.support.fitting import SMOOTH, TWO, draw


@pytest.mark.parametrize(
    ("family", "starts", "size"),
    [
        ("exponential", exponential_starts, 1),
        ("weibull", weibull_starts, 2),
        ("lognormal", lognormal_starts, 2),
        ("gamma", gamma_starts, 2),
    ],
)
def test_start_is_near_the_true_parameters(family: str, starts: StartingPoints, size: int) -> None:
    truth = SMOOTH[family]
    [start] = starts(CensoredSample.of(Observations(*draw(truth, 2000, 0.1, 4))))
    built = start.build(np.zeros(size))
    assert type(built) is type(truth)
    assert built.quantile(0.5) == pytest.approx(truth.quantile(0.5), rel=0.2)


def test_the_gradient_of_a_mixture_agrees_with_differences() -> None:
    sample = CensoredSample.of(Observations(*draw(TWO, 300, 0.2, 1)))
    at = np.array([0.1, -0.2, 0.3, 0.1, -0.1])
    starts = mixture_starts(sample)
    assert len(starts) == 4
    for start in starts:
        assert start.slope is not None
        value, gradient = start.slope(at)
        build = start.build
        assert value == pytest.approx(sample.log_likelihood(build(at)))
        expected, _ = gradient_and_hessian(lambda z, b=build: sample.log_likelihood(b(z)), at)  # type: ignore[misc]
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-2)
