"""Base class of learners in NumPy: local steps, scores and models from a loss and a gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError
from cafe.learn.base import Score
from cafe.learn.convex import Vector
from cafe.learn.local_steps import LocalSteps, Weights, check_parameters, with_offsets

BLOCK_BYTES = 2**24  # a block, its copy in float64 and its outputs stay below 64 MB


class NumpyLearner(ABC):
    """A learner with a convex loss, in NumPy. Subclasses define a loss and a gradient.

    Its initial model is zero: with a single optimum there is no symmetry to break.
    """

    inputs: int

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of parameters."""

    @abstractmethod
    def gradient(self, model: Vector, data: Examples, rows: Rows, weight: Weights) -> Vector:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""

    @abstractmethod
    def judge(
        self, model: Vector, data: Examples, rows: Rows | slice
    ) -> tuple[Vector, NDArray[np.bool_] | None]:
        """The loss of each row, and whether its class is predicted (None without classes)."""

    def start(self, rng: np.random.Generator) -> Vector:
        """The initial model: zeros."""
        return np.zeros(self.size, dtype=np.float32)

    def update(
        self, model: Vector, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Vector:
        """The sum over clients k of ``coefficient[k]`` times the update of client k."""
        check_parameters(local, self.size)
        if local.rows.shape[1] == 1:  # all gradients are taken at the model: compute their sum
            share = coefficient[:, None] * local.rate
            rows, weight = without_padding(local.rows, share[:, :, None] * local.weight)
            slope = self.gradient(model, data, rows, weight)
            return -slope if local.plain else -with_offsets(slope, local, share[:, 0])
        moved = np.zeros(self.size, dtype=np.float32)
        for client in np.flatnonzero(coefficient):
            moved += coefficient[client] * self._client_update(model, data, local, int(client))
        return moved

    def updates(self, model: Vector, data: Examples, local: LocalSteps) -> Vector:
        """The update of each client, a row per client."""
        check_parameters(local, self.size)
        moved = np.empty((len(local), self.size), dtype=np.float32)
        for client in range(len(local)):
            moved[client] = self._client_update(model, data, local, client)
        return moved

    def _client_update(
        self, model: Vector, data: Examples, local: LocalSteps, client: int
    ) -> Vector:
        moved = np.zeros(self.size, dtype=np.float32)
        for step in np.flatnonzero(local.rate[client]):
            rows, weight = without_padding(local.rows[client, step], local.weight[client, step])
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
        """Mean loss, including the l2 term, and accuracy on all the examples."""
        loss, right = 0.0, None
        for part in blocks(len(data), self.inputs):
            losses, hits = self.judge(model, data, part)
            loss += float(losses.sum(dtype=float))
            right = right if hits is None else (right or 0) + int(hits.sum())
        return Score(loss / len(data), None if right is None else right / len(data))

    def losses(self, model: Vector, data: Examples, rows: Rows) -> Vector:
        """The loss of each row."""
        parts = [self.judge(model, data, rows[p])[0] for p in blocks(len(rows), self.inputs)]
        return np.concatenate([np.empty(0, dtype=np.float32), *parts])

    def save(self, model: Vector) -> Vector:
        """A copy of the model as a NumPy vector."""
        return np.array(model, dtype=np.float32)

    def load(self, saved: Vector) -> Vector:
        """The model from the vector that :meth:`save` returned."""
        if np.shape(saved) != (self.size,):
            raise InputError(
                f"A model of this learner must have {self.size} parameters. Got an array of shape "
                f"{np.shape(saved)}: it was saved by another learner."
            )
        return np.array(saved, dtype=np.float32)


def without_padding(rows: Rows, weight: Weights) -> tuple[Rows, Weights]:
    """Rows and weights as flat arrays, without those of weight 0."""
    rows, weight = rows.ravel(), weight.ravel()
    keep = weight != 0
    return (rows, weight) if keep.all() else (rows[keep], weight[keep])


def blocks(number: int, width: int) -> Iterator[slice]:
    """Consecutive slices of ``range(number)``, each of which needs a bounded amount of memory."""
    step = max(BLOCK_BYTES // (8 * width), 1)
    for first in range(0, number, step):
        yield slice(first, min(first + step, number))


def flat(data: Examples, rows: Rows | slice, inputs: int) -> Vector:
    """The inputs of the rows as a matrix."""
    width = data.x[0].size
    if width != inputs:
        raise InputError(
            f"This learner takes {inputs} inputs per example. Got examples of {width}: "
            f"create the learner with inputs={width}."
        )
    if not isinstance(rows, slice):
        check_rows(rows, data)
    return np.asarray(data.x[rows]).reshape(-1, inputs)
