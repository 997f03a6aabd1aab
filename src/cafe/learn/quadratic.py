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
    """loss(w; x) = sum over j of h_j (w_j - x_j)^2 / 2. The y of an example is not used.

    The optimum is the mean of the points. The Hessian is diag(h), at every model and for every
    client. The variance of a gradient does not depend on the model. So every constant of the theory
    is exact.

    Attributes:
        inputs: the number of coordinates of a point.
        hessian: h, the diagonal of the Hessian, above 0; one number for all coordinates, 1 by
            default.

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
    hessian: ArrayLike = 1.0

    def __post_init__(self) -> None:
        check_whole("inputs", self.inputs, 1)
        hessian = np.asarray(self.hessian)
        if hessian.dtype.kind not in "iuf" or hessian.shape not in ((), (self.inputs,)):
            raise InputError(
                f"hessian must be one number or one per input ({self.inputs}). "
                f"Got {self.hessian!r}."
            )
        if not np.all((hessian > 0) & (hessian < np.inf)):
            raise InputError(
                f"Every entry of hessian must be a number above 0. Got {hessian.min():g}: the loss "
                "would have no unique minimum."
            )
        object.__setattr__(self, "hessian", np.broadcast_to(hessian.astype(float), self.inputs))

    @property
    def size(self) -> int:
        """The number of parameters: one per coordinate."""
        return self.inputs

    def gradient(self, model: Vector, data: Examples, rows: Rows, weight: Weights) -> Vector:
        """The Hessian times (total weight times model - weighted sum of the points)."""
        pull = np.zeros(self.inputs, dtype=np.float32)
        for part in blocks(len(rows), self.inputs):
            pull += weight[part] @ flat(data, rows[part], self.inputs)
        return np.asarray(
            self._diagonal(np.float32) * (weight.sum() * model - pull), dtype=np.float32
        )

    def judge(
        self, model: Vector, data: Examples, rows: Rows | slice
    ) -> tuple[Vector, NDArray[np.bool_] | None]:
        """Half the squared distance to each point, weighted by the Hessian; no classes."""
        away = flat(data, rows, self.inputs) - np.asarray(model, dtype=np.float32)
        return np.asarray(away**2 @ (self._diagonal(np.float32) / 2)), None

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """The smallest and the largest entry of the Hessian, for any rows."""
        return Curvature(float(self._diagonal().min()), float(self._diagonal().max()))

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """The weighted mean of the points."""
        total = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            total += weight[part] @ points
        mean = total / weight.sum()
        apart = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            apart += weight[part] @ (points - mean) ** 2
        return Minimum(mean, float(self._diagonal() @ apart) / 2)

    def spread(self, model: Vector | Exact, data: Examples, rows: Rows) -> Spread:
        """The gradient at the mean of the points, and the variance of the gradients."""
        even = np.full(len(rows), 1 / len(rows))
        mean = self.minimum(data, rows, even).model
        apart = np.zeros(self.inputs)
        for part, points in self._points(data, rows):
            apart += even[part] @ (points - mean) ** 2
        return Spread(self._diagonal() * (model - mean), float(self._diagonal() ** 2 @ apart))

    def _points(self, data: Examples, rows: Rows) -> Iterator[tuple[slice, Exact]]:
        for part in blocks(len(rows), self.inputs):
            yield part, flat(data, rows[part], self.inputs).astype(np.float64)

    def _diagonal(self, kind: type[np.floating] = np.float64) -> NDArray[Any]:
        return np.asarray(self.hessian, dtype=kind)
