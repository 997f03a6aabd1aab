"""Linear models: ridge regression, and logistic regression for any number of classes.

A model is a matrix with a row per input and one more for the bias, a column per output, laid out
row by row. Every example's loss carries l2/2 times the squared length of the whole model, bias
included: each client's loss is then strongly convex by l2 at least, whatever its examples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError, is_finite_number
from cafe.learn.convex import (
    BLOCK_BYTES,
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

CLOSE = 1e-8  # an optimum's gradient, as a share of the one at zero
SURE = 1e-10  # by how much of its value an optimum may be too high
MOST_STEPS, MOST_PRODUCTS = 100, 1000


class Linear(Plain):
    """What is common to linear models: outputs x·w + b, and a loss of each example's outputs."""

    inputs: int
    l2: float
    bends: ClassVar[tuple[float, float]]  # between what the loss's own Hessian in the outputs lies

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many columns a model has."""

    @abstractmethod
    def errors(self, outputs: Array, y: Array) -> tuple[Array, Array]:
        """Each example's loss but for its l2 part, and the gradient of it in the outputs."""

    @abstractmethod
    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """Where the sum over i of ``weight[i] * loss(data[rows[i]])`` is least."""

    @property
    def size(self) -> int:
        """A parameter per input and output, and the biases."""
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
        """The loss of each of the rows, and whether the largest output is its class's."""
        self._check(data)
        matrix = self._matrix(model, np.float32)
        outputs, y = _forward(flat(data, rows, self.inputs), matrix), data.y[rows]
        hits = outputs.argmax(axis=1) == y if self.outputs > 1 else None
        return self.errors(outputs, y)[0] + np.float32(self._penalty(matrix)), hits

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """By the eigenvalues of the mean of x x', bias included; exact where the loss is a square.

        The Hessian is the mean of (loss's Hessian in the outputs) ⊗ x x', and l2.
        """
        self._check(data)
        gram = self._gram(data, rows, np.full(len(rows), 1 / len(rows)))[0]
        values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
        least = values[0] if len(rows) > self.inputs else 0.0
        low, high = self.bends
        return Curvature(float(low * least + self.l2), float(high * values[-1] + self.l2))

    def spread(self, model: Vector | Exact, data: Examples, rows: Rows) -> Spread:
        """An example's gradient is error ⊗ x, of squared length |error|^2 |x|^2: none is formed."""
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
        """The weighted sum of x x', or, where there are fewer rows than inputs, the smaller matrix.

        That is A A' instead of A' A, with rows sqrt(weight) x of A, which comes along. Both have
        the same eigenvalues, but for zeros.
        """
        if len(rows) <= self.inputs:
            a = _lengthened(flat(data, rows, self.inputs)) * np.sqrt(weight)[:, None]
            return a @ a.T, a
        total = np.zeros((self.inputs + 1, self.inputs + 1))
        for part in self._blocks(len(rows)):
            x = _lengthened(flat(data, rows[part], self.inputs))
            total += (x * weight[part, None]).T @ x
        return total, None

    def _check(self, data: Examples) -> None:
        if data.y.ndim > 1:
            raise InputError(
                f"{type(self).__name__} needs one class or value per example. Got y of shape "
                f"{data.y.shape}: give y.argmax(axis=1) if it is one-hot, y[:, 0] if a column."
            )
        if self.outputs > 1 and not 0 < data.classes <= self.outputs:
            got = f"classes up to {data.classes - 1}" if data.classes else "values"
            raise InputError(
                f"{type(self).__name__} with {self.outputs} classes needs examples whose y is a "
                f"whole number from 0 to {self.outputs - 1}. Got {got}."
            )

    def _check_common(self) -> None:
        check_whole("inputs", self.inputs, 1)
        if not is_finite_number(self.l2) or self.l2 <= 0:
            raise InputError(
                f"l2 must be a number above 0. Got {self.l2!r}: without it the loss of a client "
                "with few examples has no single lowest point. Try 0.01."
            )


@dataclass(frozen=True)
class Ridge(Linear):
    """Squared error (x·w + b - y)^2 / 2, with l2: of one value, or of every class.

    With classes, there is an output for each, whose target is 1 for the examples of that class and
    0 for others; the largest output is the answer.

    Attributes:
        inputs: how many numbers an example has.
        l2: above 0.
        classes: how many; 0 where y is a value.
    """

    inputs: int
    l2: float
    classes: int = 0
    bends = (1.0, 1.0)

    def __post_init__(self) -> None:
        self._check_common()
        check_whole("classes", self.classes, 0)
        if self.classes == 1:
            raise InputError("Ridge needs at least 2 classes, or 0 where y is a value. Got 1.")

    @property
    def outputs(self) -> int:
        """One per class, or one."""
        return self.classes or 1

    def errors(self, outputs: Array, y: Array) -> tuple[Array, Array]:
        """Half the squared residual, and the residual."""
        residual = outputs - self._targets(y, outputs.dtype)
        return np.einsum("ij,ij->i", residual, residual) / 2, residual

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """By the normal equations, or their dual where there are fewer rows than inputs."""
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
    """Softmax regression: minus the logarithm of the probability of an example's class, with l2.

    A common shift of all outputs changes nothing, so l2 alone bends the loss that way: mu = l2.

    Attributes:
        inputs: how many numbers an example has.
        classes: how many, 2 or more.
        l2: above 0.
    """

    inputs: int
    classes: int
    l2: float
    bends = (0.0, 0.5)  # diag(p) - p p' is at most 1/2, which p = (1/2, 1/2, 0, ...) attains

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
        """By Newton's method, each step by conjugate gradients.

        Products with the Hessian are in float32: they only decide how many steps it takes.
        """
        self._check(data)
        check_rows(rows, data)
        whole, y = float(weight.sum()), data.y[rows]
        exact, quick = _Design(data, rows, self, np.float64), _Design(data, rows, self, np.float32)
        values, vectors = self._axes(data, rows, weight)

        def at(matrix: Exact) -> Point:
            loss = self._penalty(matrix) * whole
            slope, p = self.l2 * whole * matrix, np.empty((len(rows), self.classes), np.float32)
            for part, x in exact:
                losses, error = self.errors(_forward(x, matrix), y[part])
                loss += float(weight[part] @ losses)
                slope += _back(x, weight[part, None] * error)
                p[part] = error
            p[np.arange(len(y)), y] += 1
            typical = float(weight @ (p * (1 - p)).mean(axis=1)) / whole

            def bend(direction: Exact) -> Exact:
                product, small = self.l2 * whole * direction, direction.astype(np.float32)
                for part, x in quick:
                    turn = p[part] * _forward(x, small)
                    turn -= p[part] * turn.sum(axis=1, keepdims=True)
                    product += _back(x, turn * weight[part, None].astype(np.float32))
                return product

            def ease(residual: Exact) -> Exact:
                if vectors is None:
                    return residual
                scale = typical * values + self.l2 * whole
                return np.asarray(vectors @ ((vectors.T @ residual) / scale[:, None]))

            return Point(float(loss), slope, bend, ease)

        zero = np.zeros((self.inputs + 1, self.classes))
        matrix, loss = _newton(at, zero, self.l2 * whole)
        return Minimum(matrix.ravel(), loss)

    def _axes(self, data: Examples, rows: Rows, weight: Exact) -> tuple[Exact, Exact | None]:
        """The inputs' principal axes, which the Hessian roughly shares; worth it for many rows."""
        if len(rows) <= self.inputs:
            return np.empty(0), None
        values, vectors = np.linalg.eigh(self._gram(data, rows, weight)[0])
        return np.maximum(values, 0.0), vectors


class Point(NamedTuple):
    """A function at one place, with its Hessian as a product, and roughly the inverse of that."""

    value: float
    slope: Exact
    bend: Callable[[Exact], Exact]
    ease: Callable[[Exact], Exact]


class _Design:
    """Inputs of some rows, block by block: kept where they fit in one, else made anew each time."""

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


def _newton(at: Callable[[Exact], Point], place: Exact, convexity: float) -> tuple[Exact, float]:
    """The lowest place of a positive, strongly convex function, and its value.

    No value is below the one found by more than |slope|^2 / (2 convexity).
    """
    here = at(place)
    first = norm = float(np.linalg.norm(here.slope))
    for _ in range(MOST_STEPS):
        goal = min(CLOSE * first, np.sqrt(2 * convexity * SURE * here.value))
        if norm <= goal:
            return place, here.value
        step = _solve(here, max(min(0.1, np.sqrt(norm / first)) * norm, goal / 3))
        fall, length = float(np.sum(step * here.slope)), 1.0
        noise = 1e-13 * abs(here.value)  # close to the optimum values no longer tell, slopes do
        there = at(place - step)
        while not there.value <= here.value - 1e-4 * length * fall + noise and length > 1e-9:
            length /= 2
            there = at(place - length * step)
        place, here = place - length * step, there
        norm = float(np.linalg.norm(here.slope))
    raise InputError(
        f"The optimum was not found: after {MOST_STEPS} steps the gradient is still "
        f"{norm / first:.1g} of what it was. Bring the inputs to a scale near 1, or raise l2."
    )


def _solve(point: Point, close: float) -> Exact:
    """Conjugate gradients for Newton's step, until the residual's length is ``close``."""
    x, residual = np.zeros_like(point.slope), point.slope
    eased = direction = point.ease(residual)
    square = float(np.sum(residual * eased))
    for _ in range(MOST_PRODUCTS):
        product = point.bend(direction)
        length = square / float(np.sum(direction * product))
        x += length * direction
        residual = residual - length * product  # not in place: ease may return what it gets
        if np.linalg.norm(residual) <= close:
            break
        eased = point.ease(residual)
        before, square = square, float(np.sum(residual * eased))
        direction = eased + square / before * direction
    return x


def _forward(x: Array, matrix: Array) -> Array:
    """The outputs of some inputs."""
    return np.asarray(x @ matrix[:-1] + matrix[-1])


def _back(x: Array, error: Array) -> Array:
    """The sum of (x, 1) ⊗ error: how errors in the outputs pull at the model."""
    total = np.empty((x.shape[1] + 1, error.shape[1]), dtype=x.dtype)
    total[:-1] = (error.T @ x).T  # twice as fast as x.T @ error with a few columns
    total[-1] = error.sum(axis=0)
    return total


def _lengthened(x: Array) -> Exact:
    """With a column of ones, for the bias."""
    longer = np.ones((len(x), x.shape[1] + 1))
    longer[:, :-1] = x
    return longer
