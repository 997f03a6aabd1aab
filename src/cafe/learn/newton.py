"""Newton's method for a strongly convex function, each step by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError

Exact = NDArray[np.float64]

CLOSE = 1e-8  # the gradient at the minimum, as a fraction of the gradient at the start
SURE = 1e-10  # the relative error of the least value
MOST_STEPS, MOST_PRODUCTS = 100, 1000


class FunctionPoint(NamedTuple):
    """A function at one point.

    Attributes:
        value: the function's value.
        slope: its gradient.
        hessian_product: the product of its Hessian and a vector.
        precondition: roughly the product of the inverse Hessian and a vector.
    """

    value: float
    slope: Exact
    hessian_product: Callable[[Exact], Exact]
    precondition: Callable[[Exact], Exact]


def minimise(
    at: Callable[[Exact], FunctionPoint], start: Exact, convexity: float
) -> tuple[Exact, float]:
    """The minimum of a positive, strongly convex function: where it is, and its value.

    The least value is below the one found by at most |slope|^2 / (2 convexity).

    Args:
        at: the function, with its derivatives.
        start: where the search starts.
        convexity: a lower bound of the Hessian's eigenvalues.
    """
    place = start
    here = at(place)
    first = norm = float(np.linalg.norm(here.slope))
    for _ in range(MOST_STEPS):
        goal = min(CLOSE * first, np.sqrt(2 * convexity * SURE * here.value))
        if norm <= goal:
            return place, here.value
        step = _solve(here, max(min(0.1, np.sqrt(norm / first)) * norm, goal / 3))
        fall, length = float(np.sum(step * here.slope)), 1.0
        noise = 1e-13 * abs(here.value)  # near the minimum, rounding hides the decrease
        there = at(place - step)
        while not there.value <= here.value - 1e-4 * length * fall + noise and length > 1e-9:
            length /= 2
            there = at(place - length * step)
        place, here = place - length * step, there
        norm = float(np.linalg.norm(here.slope))
    raise InputError(
        f"The minimum was not found: after {MOST_STEPS} steps of Newton's method the gradient is "
        f"still {norm / first:.1g} of its first length. Scale the inputs to about 1, or raise l2."
    )


def _solve(point: FunctionPoint, close: float) -> Exact:
    """Newton's step by conjugate gradients, until the residual's length is at most ``close``."""
    x, residual = np.zeros_like(point.slope), point.slope
    preconditioned = direction = point.precondition(residual)
    square = float(np.sum(residual * preconditioned))
    for _ in range(MOST_PRODUCTS):
        product = point.hessian_product(direction)
        length = square / float(np.sum(direction * product))
        x += length * direction
        residual = residual - length * product  # not in place: precondition may return its argument
        if np.linalg.norm(residual) <= close:
            break
        preconditioned = point.precondition(residual)
        before, square = square, float(np.sum(residual * preconditioned))
        direction = preconditioned + square / before * direction
    return x
