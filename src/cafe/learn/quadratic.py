"""A quadratic loss whose optimum and constants are known exactly: examples are points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.examples import Examples, Rows
from cafe.errors import InputError, check_whole
from cafe.learn.convex import Curvature, Exact, Minimum, Spread, Vector
from cafe.learn.local_steps import Weights
from cafe.learn.numpy_learner import NumpyLearner, blocks, flat


@dataclass(frozen=True, eq=False)
class Quadratic(NumpyLearner):
    """loss(w; x) = sum over j of bend_j (w_j - x_j)^2 / 2. The y of an example is not used.

    The optimum is the mean of the points. The Hessian is diag(bend), at every model and for every
    client. The variance of a gradient does not depend on the model. So every constant of the theory
    is exact.

    Attributes:
        inputs: the number of coordinates of a point.
        bend: the curvature in each coordinate, above 0; one number for all, 1 by default.

    Example:
        >>> import numpy as np
        >>> from cafe.data import Examples
        >>> from cafe.learn.quadratic import Quadratic
        >>> points = Examples(np.array([[0.0, 0.0], [2.0, 4.0]]), np.zeros(2))
        >>> best = Quadratic(2).minimum(points, np.arange(2), np.full(2, 0.5))
        >>> best.model.tolist(), best.loss
        ([1.0, 2.0], 2.5)
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
                f"Every bend must be a number above 0. Got {bend.min():g}: the loss would have no "
                "unique minimum."
            )
        object.__setattr__(self, "bend", np.broadcast_to(bend.astype(float), self.inputs))

    @property
    def size(self) -> int:
        """The number of parameters: one per coordinate."""
        return self.inputs

    def gradient(self, model: Vector, data: Examples, rows: Rows, weight: Weights) -> Vector:
        """The bend times (total weight times model - weighted sum of the points)."""
        pull = np.zeros(self.inputs, dtype=np.float32)
        for part in blocks(len(rows), self.inputs):
            pull += weight[part] @ flat(data, rows[part], self.inputs)
        return np.asarray(self._bend(np.float32) * (weight.sum() * model - pull), dtype=np.float32)

    def judge(
        self, model: Vector, data: Examples, rows: Rows | slice
    ) -> tuple[Vector, NDArray[np.bool_] | None]:
        """Half the squared distance to each point, weighted by bend. There are no classes."""
        away = flat(data, rows, self.inputs) - np.asarray(model, dtype=np.float32)
        return np.asarray(away**2 @ (self._bend(np.float32) / 2)), None

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """The smallest and the largest bend, for any rows."""
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
        """The bend times the mean and the spread of the points."""
        even = np.full(len(rows), 1 / len(rows))
        mean = self.minimum(data, rows, even).model
        apart = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            apart += even[part] @ (points - mean) ** 2
        return Spread(self._bend() * (model - mean), float(self._bend() ** 2 @ apart))

    def _points(self, data: Examples, rows: Rows) -> Iterator[tuple[slice, Exact]]:
        for part in blocks(len(rows), self.inputs):
            yield part, flat(data, rows[part], self.inputs).astype(np.float64)

    def _bend(self, kind: type[np.floating] = np.float64) -> NDArray[Any]:
        return np.asarray(self.bend, dtype=kind)
