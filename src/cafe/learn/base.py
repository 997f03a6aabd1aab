"""What a learner is: a model and its loss, behind five functions of a flat vector of parameters.

The engine decides who reports what with which weight, and hands the learner whole rounds of work:
``gradient`` where every report is one step from the same model, ``update`` where clients walk
several steps of their own. A learner never draws random numbers but in ``start``: the rows of every
batch come from outside, so that all learners see the same batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows
from cafe.learn.local_steps import LocalSteps, Weights

Model = Any  # a flat vector of parameters: NumPy's, or the learner's own kind of array


class Score(NamedTuple):
    """How good a model is on some examples: the mean loss, and the share it gets right."""

    loss: float
    accuracy: float | None


class Learner(Protocol):
    """A model and its loss. No method changes a model that it is given."""

    def start(self, rng: np.random.Generator) -> Model:
        """A model to begin with."""

    def gradient(self, model: Model, data: Examples, rows: Rows, weight: Weights) -> Model:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""

    def update(
        self, model: Model, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Model:
        """The sum over k of ``coefficient[k] * (where walk k ends - model)``."""

    def updates(self, model: Model, data: Examples, local: LocalSteps) -> Model:
        """Where each walk ends minus the model, a row per walk."""

    def score(self, model: Model, data: Examples) -> Score:
        """Mean loss and accuracy on all the examples."""

    def losses(self, model: Model, data: Examples, rows: Rows) -> NDArray[np.float32]:
        """The loss of each of the rows."""

    def save(self, model: Model) -> NDArray[np.float32]:
        """The model as a NumPy vector."""

    def load(self, saved: NDArray[np.float32]) -> Model:
        """The model back from :meth:`save`."""
