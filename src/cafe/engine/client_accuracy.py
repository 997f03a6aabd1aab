"""The accuracy of a model for each client: on test examples of the classes that the client holds.

The accuracy for a client is the mean, over its own examples, of the model's accuracy on the test
examples of the same class. It takes one evaluation for any number of clients, and no client's
training examples are predicted. It does not see differences between clients that hold the same
classes.
"""

from __future__ import annotations

import numpy as np

from cafe.data.examples import Examples
from cafe.latency.base import Floats
from cafe.learn.base import Learner, Model
from cafe.task import Task


def accuracy_by_class(learner: Learner, model: Model, examples: Examples) -> Floats | None:
    """The accuracy on the examples of each class; NaN for a class without examples.

    None if the examples have no classes, or if the learner has no accuracy for them.
    """
    found = np.full(examples.classes, np.nan)
    for each in np.unique(examples.y).tolist() if examples.classes else []:
        score = learner.score(model, examples.take(np.flatnonzero(examples.y == each)))
        if score.accuracy is None or not np.isfinite(score.loss):
            return None
        found[each] = score.accuracy
    return found if len(found) else None


def accuracy_by_client(task: Task, by_class: Floats) -> Floats:
    """The accuracy for each client; NaN for a client that holds only classes of unknown accuracy.

    Args:
        task: the examples, and which client holds which of them.
        by_class: the accuracy for each class, from :func:`accuracy_by_class`.
    """
    of_class = np.full(max(task.data.classes, len(by_class)), np.nan)
    of_class[: len(by_class)] = by_class
    each = of_class[task.data.y[task.shards.rows]]
    known, starts = np.isfinite(each), task.shards.starts[:-1]
    total = np.add.reduceat(np.where(known, each, 0.0), starts)
    count = np.add.reduceat(known.astype(np.int64), starts)
    found = np.full(len(count), np.nan)
    np.divide(total, count, out=found, where=count > 0)
    return found
