"""Examples of every latency, and what tests of all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Latency,
    LogNormal,
    Mixture,
    ShiftedExponential,
    Uniform,
    Various,
    Weibull,
)
from cafe.latency.base import Floats
from cafe.latency.shifted import Shifted

steady = settings(derandomize=True, deadline=None, max_examples=25, database=None)


@dataclass(frozen=True)
class Example:
    """A function that makes a latency, and whether the latency has a density."""

    make: Callable[[], Latency]
    density: bool = True


EXAMPLES: dict[type[Latency], list[Example]] = {
    Exponential: [
        Example(lambda: Exponential(0.7)),
        Example(lambda: Exponential(np.array([0.2, 1.0, 5.0]))),
    ],
    ShiftedExponential: [
        Example(lambda: ShiftedExponential(0.5, 1.5)),
        Example(lambda: ShiftedExponential(np.array([0.0, 2.0]), 1.5)),
    ],
    Weibull: [
        Example(lambda: Weibull(0.6, 1.2)),
        Example(lambda: Weibull(np.array([0.8, 1.0, 3.0]), np.array([2.0, 1.0, 0.5]))),
    ],
    Gamma: [
        Example(lambda: Gamma(0.7, 1.0)),
        Example(lambda: Gamma(np.array([1.0, 2.5, 30.0]), np.array([1.0, 0.5, 0.1]))),
    ],
    LogNormal: [
        Example(lambda: LogNormal(0.2, 0.9)),
        Example(lambda: LogNormal(np.array([-1.0, 0.0, 1.0]), 0.5, np.array([0.0, 1.0, 2.5]))),
    ],
    Uniform: [
        Example(lambda: Uniform(0.0, 2.0)),
        Example(lambda: Uniform(np.array([0.5, 1.0]), np.array([2.0, 1.5]))),
    ],
    Constant: [
        Example(lambda: Constant(1.5), density=False),
        Example(lambda: Constant(np.array([0.5, 2.0])), density=False),
    ],
    Empirical: [
        Example(lambda: Empirical([0.5, 2.0, 2.0, 3.5]), density=False),
        Example(lambda: Empirical([1.0, 2.5, 4.0], [1.0, 3.0, 2.0], kinds=3), density=False),
    ],
    Mixture: [
        Example(lambda: Mixture([Exponential(2.0), LogNormal(1.0, 0.4, 0.5)], [3.0, 1.0])),
        Example(
            lambda: Mixture([Exponential(np.array([0.5, 2.0, 4.0])), Uniform(1.0, 3.0)], [0.5, 0.5])
        ),
        Example(lambda: Mixture([Constant(1.0), Gamma(2.0, 0.5)], [0.2, 0.8]), density=False),
        Example(lambda: Mixture([Exponential(1.0), Exponential(np.array([3.0]))], [1, 2])),
    ],
    Various: [
        Example(lambda: Various([Weibull(2.0, 1.0)])),
        Example(
            lambda: Various(
                [
                    Exponential(np.array([0.5, 2.0])),
                    LogNormal(0.0, 0.5),
                    Mixture([Exponential(1.0), Gamma(3.0, 0.2)], [0.5, 0.5]),
                ]
            )
        ),
        Example(lambda: Various([Empirical([1.0, 2.0], kinds=2), Exponential(1.0)]), density=False),
    ],
    Shifted: [
        Example(lambda: Shifted(Weibull(0.8, 1.2), 0.7)),
        Example(lambda: Shifted(Gamma(np.array([0.7, 2.5, 30.0]), 0.5), np.array([0.0, 0.3, 2.0]))),
        Example(lambda: Shifted(Weibull(2.0, 1.0), np.array([0.1, 1.1]))),
        Example(lambda: Shifted(Mixture([Exponential(1.0), Uniform(1.0, 2.0)], [1, 1]), 0.3)),
        Example(
            lambda: Shifted(Empirical([0.1, 0.7, 2.3], [1, 2, 3]), np.array([0.1, 0.3, 1.0])),
            density=False,
        ),
    ],
}


ALL = {
    f"{family.__name__}-{number}": example
    for family, examples in EXAMPLES.items()
    for number, example in enumerate(examples)
}


SMOOTH = {name: example for name, example in ALL.items() if example.density}


every_latency = pytest.mark.parametrize("example", ALL.values(), ids=ALL)


every_smooth_latency = pytest.mark.parametrize("example", SMOOTH.values(), ids=SMOOTH)


times = st.one_of(
    st.floats(0.0, 60.0),
    st.floats(1e-12, 1e12),
    st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, np.inf]),
)


shares = st.floats(1e-12, 1 - 1e-12)


def wrong(value: Any) -> Any:
    """A value typed as Any, so that the type checker accepts a wrong argument."""
    return value


def shape_of(latency: Latency) -> tuple[int, ...]:
    return latency.mean().shape


def integration_points(latency: Latency, start: float, end: float) -> Floats:
    """A subdivision between two times, fine where F rises and after each of its breaks."""
    breaks = np.concatenate([[start], latency.breaks()])
    breaks = breaks[(breaks >= start) & (breaks < end)]
    steps = 0.5 ** np.arange(60)
    fine = np.ravel(breaks[:, None] + (end - breaks[:, None]) * steps)
    shares = np.concatenate([[1e-9, 1e-6, 1e-3], np.linspace(0.02, 0.98, 25), [0.999, 1 - 1e-6]])
    rise = np.ravel(latency.quantile(shares[:, None]))
    inside = rise[(rise > start) & (rise < end)]
    return np.unique(np.concatenate([breaks, fine, inside, [end]]))


def integral(function: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Gauss-Legendre between neighbouring points, per kind of client."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(points) / 2
    at = points[:-1, None] + half[:, None] * (1 + nodes)
    values = function(at.reshape(-1, 1))
    return np.asarray((half[:, None] * weights).reshape(-1) @ values)


def every_value(latency: Latency) -> list[Floats]:
    """All that a latency calculates, at many times and shares."""
    t, u = np.geomspace(0.01, 30.0, 40)[:, None], np.linspace(0.01, 0.99, 20)[:, None]
    at_times = [latency.cdf(t), latency.sf(t), latency.logsf(t), latency.mean_below(t)]
    return [*at_times, latency.quantile(u), latency.mean().reshape(1, -1)]
