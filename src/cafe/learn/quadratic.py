"""A learner of which everything is known: examples are points, the model is drawn to their mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.examples import Examples, Rows
from cafe.errors import InputError
from cafe.learn.convex import (
    Array,
    Curvature,
    Exact,
    Minimum,
    Plain,
    Spread,
    Vector,
    blocks,
    check_whole,
    flat,
)
from cafe.learn.local_steps import Weights


@dataclass(frozen=True, eq=False)
class Quadratic(Plain):
    """loss(w; x) = sum over j of bend_j (w_j - x_j)^2 / 2. What an example's y is does not matter.

    The optimum is the mean of the points, the Hessian diag(bend) at every model and for every
    client, and the variance of a gradient does not depend on the model: every constant of the
    theory is exact.

    Attributes:
        inputs: how many coordinates a point has.
        bend: the curvature in each of them, above 0; left out, 1.
    """

    inputs: int
    bend: ArrayLike = 1.0

    def __post_init__(self) -> None:
        check_whole("inputs", self.inputs, 1)
        bend = np.asarray(self.bend)
        if bend.dtype.kind not in "iuf" or bend.shape not in ((), (self.inputs,)):
            raise InputError(
                f"bend must be one number or one per input ({self.inputs}). Got {self.bend!r}."
            )
        if not np.all((bend > 0) & (bend < np.inf)):
            raise InputError(
                f"Every bend must be a number above 0. Got {bend.min():g} among them: "
                "the loss would have no single lowest point."
            )
        object.__setattr__(self, "bend", np.broadcast_to(bend.astype(float), self.inputs))

    @property
    def size(self) -> int:
        """A parameter per coordinate."""
        return self.inputs

    def gradient(self, model: Vector, data: Examples, rows: Rows, weight: Weights) -> Vector:
        """The bend times (total weight x model - weighted sum of the points)."""
        pull = np.zeros(self.inputs, dtype=np.float32)
        for part in blocks(len(rows), self.inputs):
            pull += weight[part] @ flat(data, rows[part], self.inputs)
        return np.asarray(self._bend(np.float32) * (weight.sum() * model - pull), dtype=np.float32)

    def judge(
        self, model: Vector, data: Examples, rows: Rows | slice
    ) -> tuple[Vector, NDArray[np.bool_] | None]:
        """Half the squared distance to each point, by bend. There is nothing to get right."""
        away = flat(data, rows, self.inputs) - np.asarray(model, dtype=np.float32)
        return np.asarray(away**2 @ (self._bend(np.float32) / 2)), None

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """The smallest and the largest bend, whatever the rows."""
        return Curvature(float(self._bend().min()), float(self._bend().max()))

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """The weighted mean of the points."""
        total = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            total += weight[part] @ points
        mean = total / weight.sum()
        apart = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            apart += weight[part] @ (points - mean) ** 2
        return Minimum(mean, float(self._bend() @ apart) / 2)

    def spread(self, model: Vector | Exact, data: Examples, rows: Rows) -> Spread:
        """The bend times the points' own mean and spread."""
        even = np.full(len(rows), 1 / len(rows))
        mean = self.minimum(data, rows, even).model
        apart = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            apart += even[part] @ (points - mean) ** 2
        return Spread(self._bend() * (model - mean), float(self._bend() ** 2 @ apart))

    def _points(self, data: Examples, rows: Rows) -> Iterator[tuple[slice, Exact]]:
        for part in blocks(len(rows), self.inputs):
            yield part, flat(data, rows[part], self.inputs).astype(np.float64)

    def _bend(self, kind: type[np.floating] = np.float64) -> Array:
        return np.asarray(self.bend, dtype=kind)
