"""What a learner is: a model and its loss, behind five functions of a flat vector of parameters.

The engine decides who reports what with which weight, and hands the learner whole rounds of work:
``gradient`` where every report is one step from the same model, ``update`` where clients walk
several steps of their own. A learner never draws random numbers but in ``start``: the rows of every
batch come from outside, so that all learners see the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows

Model = Any  # a flat vector of parameters: NumPy's, or the learner's own kind of array
Weights = NDArray[np.float32]


class Score(NamedTuple):
    """How good a model is on some examples: the mean loss, and the share it gets right."""

    loss: float
    accuracy: float | None


@dataclass(frozen=True, eq=False)
class Walks:
    """Several clients' local steps, all from one model, side by side.

    Client k's step s moves its own model by ``-rate[k, s] * sum_b weight[k, s, b] * grad loss(b)``
    where b runs over ``rows[k, s]``. Padding has weight 0 (any valid row), or rate 0 for a step
    that a client does not take.

    Attributes:
        rows: which examples, of shape (clients, steps, batch).
        weight: of each example, same shape; 1 / batch for a mean.
        rate: learning rate, of shape (clients, steps).
    """

    rows: Rows
    weight: Weights
    rate: Weights

    def __len__(self) -> int:
        return len(self.rows)

    def then(self, others: Walks) -> Walks:
        """The same clients' walks, gone on by other steps; the narrower batches are padded."""
        width = max(self.rows.shape[2], others.rows.shape[2])

        def padded(column: NDArray[Any]) -> NDArray[Any]:
            return np.pad(column, ((0, 0), (0, 0), (0, width - column.shape[2])))

        return Walks(
            np.concatenate([padded(self.rows), padded(others.rows)], axis=1),
            np.concatenate([padded(self.weight), padded(others.weight)], axis=1),
            np.concatenate([self.rate, others.rate], axis=1),
        )


class Learner(Protocol):
    """A model and its loss. No method changes a model that it is given."""

    def start(self, rng: np.random.Generator) -> Model:
        """A model to begin with."""

    def gradient(self, model: Model, data: Examples, rows: Rows, weight: Weights) -> Model:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""

    def update(self, model: Model, data: Examples, walks: Walks, coefficient: Weights) -> Model:
        """The sum over k of ``coefficient[k] * (where walk k ends - model)``."""

    def updates(self, model: Model, data: Examples, walks: Walks) -> Model:
        """Where each walk ends minus the model, a row per walk."""

    def score(self, model: Model, data: Examples) -> Score:
        """Mean loss and accuracy on all the examples."""

    def losses(self, model: Model, data: Examples, rows: Rows) -> NDArray[np.float32]:
        """The loss of each of the rows."""

    def save(self, model: Model) -> NDArray[np.float32]:
        """The model as a NumPy vector."""

    def load(self, saved: NDArray[np.float32]) -> Model:
        """The model back from :meth:`save`."""
