"""What the bounds of ``cafe.theory`` need to know about a learner with a strongly convex loss."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows
from cafe.learn.base import Learner

Vector = NDArray[np.float32]
Exact = NDArray[np.float64]


class Curvature(NamedTuple):
    """Bounds of the eigenvalues of a loss's Hessian, over all models: mu and L."""

    convexity: float
    smoothness: float


class Minimum(NamedTuple):
    """The model with the least loss, and that loss."""

    model: Exact
    loss: float


class Spread(NamedTuple):
    """The mean of the gradients of some examples, and their mean squared distance from it."""

    gradient: Exact
    variance: float


@runtime_checkable
class Convex(Learner, Protocol):
    """A learner whose loss is strongly convex. These methods compute in float64."""

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """The curvature of the mean loss over the rows."""

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """The minimum of the sum over i of ``weight[i] * loss(data[rows[i]])``."""

    def spread(self, model: Vector | Exact, data: Examples, rows: Rows) -> Spread:
        """The spread of the gradients of the rows at a model."""
