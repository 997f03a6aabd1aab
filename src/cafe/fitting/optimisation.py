"""Numerical maximisation of a likelihood with a few parameters, and its derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cafe.errors import InputError
from cafe.latency.base import Floats

REACH = 8.0  # the search stays within this distance of its start; a maximum there does not count
_WORST = 1e12  # stands for an infinitely bad value

Objective = Callable[[Floats], float]


def minus_inf_on_error(height: Objective) -> Objective:
    """The objective with -inf instead of an error or NaN, for example if parameters overflow."""

    def safe(z: Floats) -> float:
        try:
            value = height(z)
        except (OverflowError, InputError):
            return -math.inf
        return value if math.isfinite(value) else -math.inf

    return safe


def maximise(
    height: Objective,
    size: int,
    scale: float,
    slope: Callable[[Floats], tuple[float, Floats]] | None = None,
    reach: float = REACH,
) -> Floats:
    """The point near 0 where the objective is largest, each coordinate within ``reach`` of 0.

    Args:
        height: the objective.
        size: the number of coordinates.
        scale: the order of magnitude of the objective.
        slope: the objective with its gradient; finite differences are used if it is left out.
        reach: the bound on each coordinate.
    """
    from scipy.optimize import minimize

    def bounded(x: Floats) -> Floats:
        return np.asarray(reach * np.tanh(x / reach))

    def down(x: Floats) -> float:
        return min(-height(bounded(x)) / scale, _WORST)

    def down_with_gradient(x: Floats) -> tuple[float, Floats]:
        assert slope is not None
        value, gradient = slope(bounded(x))
        return -value / scale, -gradient / scale * (1 - np.tanh(x / reach) ** 2)

    # Not L-BFGS-B: its small matrix products would start all BLAS threads at every step.
    found = minimize(
        down if slope is None else down_with_gradient,
        np.zeros(size),
        method="BFGS",
        jac="3-point" if slope is None else True,
        options={"gtol": 1e-6},
    )
    return bounded(found.x)


def gradient_and_hessian(height: Objective, point: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian by central differences."""
    step, size = 1e-3, point.size
    moves = step * np.eye(size)
    here = height(point)
    up = np.array([height(point + move) for move in moves])
    down = np.array([height(point - move) for move in moves])
    hessian = np.diag((up - 2 * here + down) / step**2)
    for i in range(size):
        for j in range(i):
            both = height(point + moves[i] + moves[j]) + height(point - moves[i] - moves[j])
            mixed = (both - up[i] - down[i] - up[j] - down[j] + 2 * here) / (2 * step**2)
            hessian[i, j] = hessian[j, i] = mixed
    return (up - down) / (2 * step), hessian
