"""Linear models: ridge regression, and logistic regression for any number of classes.

A model is a matrix with a row per input and one more for the bias, and a column per output, stored
row by row. The loss of every example includes l2/2 times the squared length of the whole model,
bias included. So the loss of each client is strongly convex, with a constant of at least l2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError, check_positive, check_whole
from cafe.learn.convex import Curvature, Exact, Minimum, Spread, Vector
from cafe.learn.local_steps import Weights
from cafe.learn.newton import FunctionPoint, minimise
from cafe.learn.numpy_learner import BLOCK_BYTES, NumpyLearner, blocks, flat

Array = NDArray[Any]  # float32 for training, float64 for constants


class Linear(NumpyLearner):
    """Base class of linear models: outputs x·w + b, and a loss of each example's outputs."""

    inputs: int
    l2: float
    output_curvature: ClassVar[tuple[float, float]]  # bounds of the loss's Hessian in the outputs

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of outputs, which is the number of columns of a model."""

    @abstractmethod
    def errors(self, outputs: Array, y: Array) -> tuple[Array, Array]:
        """The loss of each example without the l2 term, and its gradient in the outputs."""

    @abstractmethod
    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """The minimum of the sum over i of ``weight[i] * loss(data[rows[i]])``."""

    @property
    def size(self) -> int:
        """The number of parameters: one per input and output, and the biases."""
        return (self.inputs + 1) * self.outputs

    def gradient(self, model: Vector, data: Examples, rows: Rows, weight: Weights) -> Vector:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""
        self._check(data)
        matrix = self._matrix(model, np.float32)
        total = matrix * np.float32(self.l2 * weight.sum(dtype=float))
        for part in self._blocks(len(rows)):
            x = flat(data, rows[part], self.inputs)
            error = self.errors(_forward(x, matrix), data.y[rows[part]])[1]
            total += _back(x, error * weight[part, None])
        return total.ravel()

    def judge(
        self, model: Vector, data: Examples, rows: Rows | slice
    ) -> tuple[Vector, NDArray[np.bool_] | None]:
        """The loss of each row, and whether its class has the largest output."""
        self._check(data)
        matrix = self._matrix(model, np.float32)
        outputs, y = _forward(flat(data, rows, self.inputs), matrix), data.y[rows]
        hits = outputs.argmax(axis=1) == y if self.outputs > 1 else None
        return self.errors(outputs, y)[0] + np.float32(self._penalty(matrix)), hits

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """Bounds from the eigenvalues of the mean of x x', bias included; exact for ridge.

        The Hessian is the mean of (the loss's Hessian in the outputs) ⊗ x x', plus l2.
        """
        self._check(data)
        gram = self._gram(data, rows, np.full(len(rows), 1 / len(rows)))[0]
        values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
        least = values[0] if len(rows) > self.inputs else 0.0
        low, high = self.output_curvature
        return Curvature(float(low * least + self.l2), float(high * values[-1] + self.l2))

    def spread(self, model: Vector | Exact, data: Examples, rows: Rows) -> Spread:
        """The mean gradient and the variance, without computing the gradient of each example.

        The gradient of an example is error ⊗ x, whose squared length is |error|^2 |x|^2.
        """
        self._check(data)
        matrix = self._matrix(model, np.float64)
        total, squares = np.zeros_like(matrix), 0.0
        for part in self._blocks(len(rows)):
            x = flat(data, rows[part], self.inputs).astype(np.float64)
            error = self.errors(_forward(x, matrix), data.y[rows[part]])[1]
            total += _back(x, error)
            squares += float((error**2).sum(axis=1) @ (1 + np.einsum("ij,ij->i", x, x)))
        mean = total / len(rows)
        variance = max(squares / len(rows) - float(np.sum(mean**2)), 0.0)
        return Spread((mean + self.l2 * matrix).ravel(), variance)

    def _matrix(self, model: Vector | Exact, kind: type[np.floating]) -> Array:
        return np.asarray(model, dtype=kind).reshape(self.inputs + 1, self.outputs)

    def _penalty(self, matrix: Array) -> float:
        return self.l2 / 2 * float(np.sum(np.square(matrix, dtype=float)))

    def _blocks(self, number: int) -> Iterator[slice]:
        return blocks(number, self.inputs + self.outputs)

    def _gram(self, data: Examples, rows: Rows, weight: Exact) -> tuple[Exact, Exact | None]:
        """The weighted sum of x x', or a smaller matrix if there are fewer rows than inputs.

        With rows sqrt(weight) x of A, the first is A' A. The smaller one is A A', which has the
        same eigenvalues except for zeros; then A is returned as well.
        """
        if len(rows) <= self.inputs:
            a = _with_ones(flat(data, rows, self.inputs)) * np.sqrt(weight)[:, None]
            return a @ a.T, a
        total = np.zeros((self.inputs + 1, self.inputs + 1))
        for part in self._blocks(len(rows)):
            x = _with_ones(flat(data, rows[part], self.inputs))
            total += (x * weight[part, None]).T @ x
        return total, None

    def _check(self, data: Examples) -> None:
        if data.y.ndim > 1:
            raise InputError(
                f"{type(self).__name__} needs one class or value per example. Got y of shape "
                f"{data.y.shape}: use y.argmax(axis=1) if it is one-hot, y[:, 0] if it is a column."
            )
        if self.outputs > 1 and not 0 < data.classes <= self.outputs:
            got = f"classes up to {data.classes - 1}" if data.classes else "values"
            raise InputError(
                f"{type(self).__name__} with {self.outputs} classes needs examples whose y is a "
                f"whole number from 0 to {self.outputs - 1}. Got {got}."
            )

    def _check_common(self) -> None:
        check_whole("inputs", self.inputs, 1)
        why = ": without l2, the loss of a client with few examples has no unique minimum. Try 0.01"
        check_positive("l2", self.l2, why)


@dataclass(frozen=True)
class Ridge(Linear):
    """Ridge regression: squared error (x·w + b - y)^2 / 2 plus l2, for values or classes.

    For classes there is one output per class, whose target is 1 for examples of that class and 0
    for others. The class with the largest output is predicted.

    Attributes:
        inputs: the number of values of an example.
        l2: above 0.
        classes: the number of classes; 0 if y is a value.

    Example:
        >>> import numpy as np
        >>> from cafe.data import Examples
        >>> from cafe.learn.linear import Ridge
        >>> data = Examples(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]))
        >>> best = Ridge(inputs=1, l2=1e-6).minimum(data, np.arange(3), np.full(3, 1 / 3))
        >>> np.round(best.model, 3).tolist()  # slope and bias
        [2.0, 1.0]
    """

    inputs: int
    l2: float
    classes: int = 0
    output_curvature = (1.0, 1.0)

    def __post_init__(self) -> None:
        self._check_common()
        check_whole("classes", self.classes, 0)
        if self.classes == 1:
            raise InputError("classes must be at least 2, or 0 if y is a value. Got 1.")

    @property
    def outputs(self) -> int:
        """One per class; one if y is a value."""
        return self.classes or 1

    def errors(self, outputs: Array, y: Array) -> tuple[Array, Array]:
        """Half the squared residual, and the residual."""
        residual = outputs - self._targets(y, outputs.dtype)
        return np.einsum("ij,ij->i", residual, residual) / 2, residual

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """The minimum by the normal equations, or their dual if rows are fewer than inputs."""
        self._check(data)
        gram, a = self._gram(data, rows, weight)
        gram[np.diag_indices_from(gram)] += self.l2 * weight.sum()
        if a is not None:
            goal: Exact = np.sqrt(weight)[:, None] * self._targets(data.y[rows], weight.dtype)
            matrix = a.T @ np.linalg.solve(gram, goal)
        else:
            goal = np.zeros((self.inputs + 1, self.outputs))
            for part in self._blocks(len(rows)):
                x = flat(data, rows[part], self.inputs).astype(np.float64)
                targets = self._targets(data.y[rows[part]], weight.dtype)
                goal += _back(x, weight[part, None] * targets)
            matrix = np.linalg.solve(gram, goal)
        loss = self._penalty(matrix) * weight.sum()
        for part in self._blocks(len(rows)):
            x = flat(data, rows[part], self.inputs).astype(np.float64)
            loss += weight[part] @ self.errors(_forward(x, matrix), data.y[rows[part]])[0]
        return Minimum(matrix.ravel(), float(loss))

    def _targets(self, y: Array, kind: np.dtype[Any]) -> Array:
        if self.classes:
            return np.eye(self.classes, dtype=kind)[y]
        return y.astype(kind)[:, None]


@dataclass(frozen=True)
class Logistic(Linear):
    """Softmax regression: minus the logarithm of the probability of an example's class, plus l2.

    A common shift of all outputs changes no probability. In that direction only l2 curves the
    loss, so mu = l2.

    Attributes:
        inputs: the number of values of an example.
        classes: the number of classes, 2 or more.
        l2: above 0.

    Example:
        >>> import cafe, numpy as np
        >>> from cafe.learn.linear import Logistic
        >>> train = cafe.data.load("digits").train.take(np.arange(100))
        >>> learner = Logistic(inputs=64, classes=10, l2=0.1)
        >>> best = learner.minimum(train, np.arange(100), np.full(100, 0.01))
        >>> round(best.loss, 2), learner.score(best.model, train).accuracy
        (1.49, 0.98)
    """

    inputs: int
    classes: int
    l2: float
    output_curvature = (
        0.0,
        0.5,
    )  # diag(p) - p p' is at most 1/2, which p = (1/2, 1/2, 0, ...) attains

    def __post_init__(self) -> None:
        self._check_common()
        check_whole("classes", self.classes, 2)

    @property
    def outputs(self) -> int:
        """One per class."""
        return self.classes

    def errors(self, outputs: Array, y: Array) -> tuple[Array, Array]:
        """-log p of the class, and p minus 1 at the class."""
        each = np.arange(len(y))
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        p = np.exp(shifted)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        p[each, y] -= 1
        return np.log(total[:, 0]) - shifted[each, y], p

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """The minimum by Newton's method, each step by conjugate gradients.

        Products with the Hessian are in float32: they affect only the number of steps.
        """
        self._check(data)
        check_rows(rows, data)
        whole, y = float(weight.sum()), data.y[rows]
        exact, quick = _Design(data, rows, self, np.float64), _Design(data, rows, self, np.float32)
        values, vectors = self._axes(data, rows, weight)

        def at(matrix: Exact) -> FunctionPoint:
            loss = self._penalty(matrix) * whole
            slope, p = self.l2 * whole * matrix, np.empty((len(rows), self.classes), np.float32)
            for part, x in exact:
                losses, error = self.errors(_forward(x, matrix), y[part])
                loss += float(weight[part] @ losses)
                slope += _back(x, weight[part, None] * error)
                p[part] = error
            p[np.arange(len(y)), y] += 1
            typical = float(weight @ (p * (1 - p)).mean(axis=1)) / whole

            def hessian_product(direction: Exact) -> Exact:
                product, small = self.l2 * whole * direction, direction.astype(np.float32)
                for part, x in quick:
                    turn = p[part] * _forward(x, small)
                    turn -= p[part] * turn.sum(axis=1, keepdims=True)
                    product += _back(x, turn * weight[part, None].astype(np.float32))
                return product

            def precondition(residual: Exact) -> Exact:
                if vectors is None:
                    return residual
                scale = typical * values + self.l2 * whole
                return np.asarray(vectors @ ((vectors.T @ residual) / scale[:, None]))

            return FunctionPoint(float(loss), slope, hessian_product, precondition)

        zero = np.zeros((self.inputs + 1, self.classes))
        matrix, loss = minimise(at, zero, self.l2 * whole)
        return Minimum(matrix.ravel(), loss)

    def _axes(self, data: Examples, rows: Rows, weight: Exact) -> tuple[Exact, Exact | None]:
        """The principal axes of the inputs, which are roughly those of the Hessian.

        They precondition the conjugate gradients. With few rows that is not worth the time.
        """
        if len(rows) <= self.inputs:
            return np.empty(0), None
        values, vectors = np.linalg.eigh(self._gram(data, rows, weight)[0])
        return np.maximum(values, 0.0), vectors


class _Design:
    """The inputs of some rows in blocks, kept if they fit into one block, else recomputed."""

    def __init__(
        self, data: Examples, rows: Rows, model: Linear, kind: type[np.floating[Any]]
    ) -> None:
        self._data, self._rows, self._model, self._kind = data, rows, model, kind
        fits = len(rows) * model.inputs * 8 <= BLOCK_BYTES
        self._kept = list(self._make()) if fits else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        return self._make() if self._kept is None else iter(self._kept)

    def _make(self) -> Iterator[tuple[slice, Array]]:
        for part in self._model._blocks(len(self._rows)):
            x = flat(self._data, self._rows[part], self._model.inputs)
            yield part, x.astype(self._kind, copy=False)


def _forward(x: Array, matrix: Array) -> Array:
    return np.asarray(x @ matrix[:-1] + matrix[-1])


def _back(x: Array, error: Array) -> Array:
    """The sum of (x, 1) ⊗ error: the gradient of the model from the errors of the outputs."""
    total = np.empty((x.shape[1] + 1, error.shape[1]), dtype=x.dtype)
    total[:-1] = (error.T @ x).T  # twice as fast as x.T @ error with a few columns
    total[-1] = error.sum(axis=0)
    return total


def _with_ones(x: Array) -> Exact:
    """The inputs with a column of ones, for the bias."""
    longer = np.ones((len(x), x.shape[1] + 1))
    longer[:, :-1] = x
    return longer
