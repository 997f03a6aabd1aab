"""Learners with one optimum: what they can tell about themselves, and what they share.

:class:`Convex` is what the bounds of ``cafe.theory`` need to know of a learner. :class:`Plain` has
the walks and scores of any learner in NumPy that has a loss and a gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError
from cafe.learn.base import Learner, Score
from cafe.learn.local_steps import LocalSteps, Weights, check_parameters, completed

Vector = NDArray[np.float32]
Exact = NDArray[np.float64]
Array = NDArray[Any]  # either: float32 on the way to a model, float64 where constants are measured

BLOCK_BYTES = 2**24  # a block, its copy in float64 and its outputs stay below 64 MB


class Curvature(NamedTuple):
    """Between what the eigenvalues of a loss's Hessian lie, at every model: mu and L."""

    convexity: float
    smoothness: float


class Minimum(NamedTuple):
    """The best model, and the loss that remains."""

    model: Exact
    loss: float


class Spread(NamedTuple):
    """The mean of some examples' gradients, and the mean squared distance from it."""

    gradient: Exact
    variance: float


@runtime_checkable
class Convex(Learner, Protocol):
    """A learner whose loss is strongly convex; all of it in float64."""

    def curvature(self, data: Examples, rows: Rows) -> Curvature:
        """Of the mean loss over the rows."""

    def minimum(self, data: Examples, rows: Rows, weight: Exact) -> Minimum:
        """Where the sum over i of ``weight[i] * loss(data[rows[i]])`` is least."""

    def spread(self, model: Vector | Exact, data: Examples, rows: Rows) -> Spread:
        """Of the rows' gradients at a model."""


class Plain(ABC):
    """A learner in NumPy: walks, scores and models for whoever has a loss and a gradient.

    It starts at zero, whatever the generator: with one optimum there is no symmetry to break.
    """

    inputs: int

    @property
    @abstractmethod
    def size(self) -> int:
        """How many parameters there are."""

    @abstractmethod
    def gradient(self, model: Vector, data: Examples, rows: Rows, weight: Weights) -> Vector:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""

    @abstractmethod
    def judge(
        self, model: Vector, data: Examples, rows: Rows | slice
    ) -> tuple[Vector, NDArray[np.bool_] | None]:
        """The loss of each of the rows, and where there are classes whether it is got right."""

    def start(self, rng: np.random.Generator) -> Vector:
        """Zeros."""
        return np.zeros(self.size, dtype=np.float32)

    def update(
        self, model: Vector, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Vector:
        """The sum over k of ``coefficient[k] * (where walk k ends - model)``."""
        check_parameters(local, self.size)
        if local.rows.shape[1] == 1:  # all gradients are taken at the model: one sum does it
            share = coefficient[:, None] * local.rate
            slope = self.gradient(model, data, *used(local.rows, share[:, :, None] * local.weight))
            return -slope if local.plain else -completed(slope, local, share[:, 0])
        moved = np.zeros(self.size, dtype=np.float32)
        for client in np.flatnonzero(coefficient):
            moved += coefficient[client] * self._walk(model, data, local, int(client))
        return moved

    def updates(self, model: Vector, data: Examples, local: LocalSteps) -> Vector:
        """Where each walk ends minus the model, a row per walk."""
        check_parameters(local, self.size)
        moved = np.empty((len(local), self.size), dtype=np.float32)
        for client in range(len(local)):
            moved[client] = self._walk(model, data, local, client)
        return moved

    def _walk(self, model: Vector, data: Examples, local: LocalSteps, client: int) -> Vector:
        moved = np.zeros(self.size, dtype=np.float32)
        for step in np.flatnonzero(local.rate[client]):
            rows, weight = used(local.rows[client, step], local.weight[client, step])
            slope = self.gradient(model + moved, data, rows, weight)
            if local.prox is not None:
                slope = slope + local.prox[client, step] * moved
            if local.offset is not None:
                slope = slope + local.offset[client]
            if local.frozen is not None:
                slope = np.where(local.frozen, np.float32(0.0), slope)
            moved -= local.rate[client, step] * slope
        return moved

    def score(self, model: Vector, data: Examples) -> Score:
        """Mean loss, as it is trained on, and accuracy on all the examples."""
        loss, right = 0.0, None
        for part in blocks(len(data), self.inputs):
            losses, hits = self.judge(model, data, part)
            loss += float(losses.sum(dtype=float))
            right = right if hits is None else (right or 0) + int(hits.sum())
        return Score(loss / len(data), None if right is None else right / len(data))

    def losses(self, model: Vector, data: Examples, rows: Rows) -> Vector:
        """The loss of each of the rows."""
        parts = [self.judge(model, data, rows[p])[0] for p in blocks(len(rows), self.inputs)]
        return np.concatenate([np.empty(0, dtype=np.float32), *parts])

    def save(self, model: Vector) -> Vector:
        """The model itself: it is a NumPy vector."""
        return np.array(model, dtype=np.float32)

    def load(self, saved: Vector) -> Vector:
        """The model back from :meth:`save`."""
        if np.shape(saved) != (self.size,):
            raise InputError(
                f"This learner's model has {self.size} parameters. "
                f"Got an array of shape {np.shape(saved)}: it is another learner's."
            )
        return np.array(saved, dtype=np.float32)


def used(rows: Rows, weight: Weights) -> tuple[Rows, Weights]:
    """Rows and weights in a line, without the padding, which may be most of them."""
    rows, weight = rows.ravel(), weight.ravel()
    keep = weight != 0
    return (rows, weight) if keep.all() else (rows[keep], weight[keep])


def blocks(number: int, width: int) -> Iterator[slice]:
    """Slices over so many rows, each of which needs a bounded amount of memory."""
    step = max(BLOCK_BYTES // (8 * width), 1)
    for first in range(0, number, step):
        yield slice(first, min(first + step, number))


def flat(data: Examples, rows: Rows | slice, inputs: int) -> Vector:
    """The rows' inputs as a matrix."""
    width = data.x[0].size
    if width != inputs:
        raise InputError(
            f"This learner takes {inputs} inputs per example. Got examples of {width}: "
            f"make it with inputs={width}."
        )
    if not isinstance(rows, slice):
        check_rows(rows, data)
    return np.asarray(data.x[rows]).reshape(-1, inputs)


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}. Got {value!r}.")
