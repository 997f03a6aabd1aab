"""The protocol of a learner: a model and its loss, as functions of a flat parameter vector.

The engine decides which clients report and with which weight, and gives the learner the work of a
whole round at once: ``gradient`` if every report is one step from the same model, ``update`` if
clients take several local steps. A learner draws random numbers only in ``start``. The rows of
every batch are arguments, so that all learners see the same batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows
from cafe.learn.local_steps import LocalSteps, Weights

Model = Any  # a flat vector of parameters: NumPy's, or the learner's own kind of array


class Score(NamedTuple):
    """The mean loss of a model on some examples, and its accuracy (None without classes)."""

    loss: float
    accuracy: float | None


class Learner(Protocol):
    """A model and its loss. No method modifies a model that it receives.

    A learner whose evaluations take long may have the attribute ``costly = True``. By default a
    run then evaluates its model on fewer examples; see :mod:`cafe.engine.evaluation_budget`.
    """

    def start(self, rng: np.random.Generator) -> Model:
        """The initial model."""

    def gradient(self, model: Model, data: Examples, rows: Rows, weight: Weights) -> Model:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""

    def update(
        self, model: Model, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Model:
        """The sum over clients k of ``coefficient[k]`` times the update of client k.

        The update of a client is its model after all its steps minus ``model``.
        """

    def updates(self, model: Model, data: Examples, local: LocalSteps) -> Model:
        """The update of each client, a row per client."""

    def score(self, model: Model, data: Examples) -> Score:
        """Mean loss and accuracy on all the examples."""

    def losses(self, model: Model, data: Examples, rows: Rows) -> NDArray[np.float32]:
        """The loss of each row."""

    def save(self, model: Model) -> NDArray[np.float32]:
        """The model as a NumPy vector."""

    def load(self, saved: NDArray[np.float32]) -> Model:
        """The model from the vector that :meth:`save` returned."""


def is_costly(learner: Learner) -> bool:
    """Whether a learner says that its evaluations take long."""
    return bool(getattr(learner, "costly", False))
