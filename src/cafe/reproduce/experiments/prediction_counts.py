"""Runs in which every evaluation also counts how often each class is predicted."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from cafe.data import Examples
from cafe.learn.base import Score
from cafe.learn.layers import layers
from cafe.learn.mlp import MLP
from cafe.learn.threads import Floats
from cafe.reproduce.rows import Row
from cafe.reproduce.trials import Trial, run_trial, summarise
from cafe.task import Task


def predictions(net: MLP, model: Floats, x: Floats) -> NDArray[np.intp]:
    """The class that the model predicts for each example."""
    values = x.reshape(len(x), -1)
    for index, layer in enumerate(layers(model, net.widths)):
        if index:
            values = np.maximum(values, 0.0)
        values = values @ layer.weight.T + layer.bias
    return np.asarray(values.argmax(axis=1))


@dataclass(frozen=True)
class CountingMLP(MLP):
    """A perceptron that counts its predictions by class whenever it is evaluated.

    Attributes:
        test: the examples of an evaluation; scores on others are not counted.
        counts: for every evaluation, the number of predictions of each class.
    """

    test: Examples | None = field(default=None, compare=False)
    counts: list[NDArray[np.intp]] = field(default_factory=list, compare=False)

    def score(self, model: Floats, data: Examples) -> Score:
        """Mean loss and accuracy on all the examples."""
        if data is self.test:
            found = predictions(self, model, data.x)
            self.counts.append(np.bincount(found, minlength=self.classes))
        return super().score(model, data)


def run_counting(trial: Trial) -> list[Row]:
    """The row of a trial, and a row for each evaluation.

    The rows of evaluations have the column ``round``. Their columns are the accuracy and the share
    of predictions in the class that is predicted most often. The model must have changed between
    any two evaluations, because no version is evaluated twice.
    """
    counts: list[NDArray[np.intp]] = []

    def change_task(task: Task) -> Task:
        assert isinstance(task.learner, MLP)
        given = {one.name: getattr(task.learner, one.name) for one in fields(task.learner)}
        return replace(task, learner=CountingMLP(**given, test=task.test, counts=counts))

    history = run_trial(trial, change_task)
    curve = history.curve
    assert curve is not None
    accuracy = np.nan_to_num(curve.accuracy)  # a model that diverged gets nothing right
    evaluations = zip(curve.round.tolist(), accuracy.tolist(), counts, strict=True)
    return summarise(trial, history) + [
        {
            **trial.point,
            "seed": trial.seed,
            "round": at,
            "accuracy": right,
            "commonest": float(count.max() / count.sum()),
        }
        for at, right, count in evaluations
    ]
