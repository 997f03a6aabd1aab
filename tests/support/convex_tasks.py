"""Small convex tasks, and short ways to measure them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.data.examples import Examples, Rows, Shards
from cafe.latency.base import Floats
from cafe.learn.base import Learner
from cafe.learn.convex import Convex
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.local_steps import Weights
from cafe.learn.quadratic import Quadratic
from cafe.task import Task
from cafe.task_constants import GradientStatistics, TaskConstants
from cafe.task_constants import measure as measure_task
from cafe.task_constants import measure_at as measure_task_at

HESSIAN = np.array([0.5, 1.0, 3.0])
LEARNERS: dict[str, Convex] = {
    "quadratic": Quadratic(3, HESSIAN),
    "ridge": Ridge(3, 0.1),
    "logistic": Logistic(3, 3, 0.1),
}
COUNTS = (2, 5, 5, 12)


def measure(
    learner: Learner, data: Examples, shards: Shards, *, batch: int | None = None, **more: Any
) -> TaskConstants:
    return measure_task(Task(data, shards, learner, batch=batch), **more)


def measure_at(
    learner: Learner,
    model: Any,
    data: Examples,
    shards: Shards,
    *,
    batch: int | None = None,
    **more: Any,
) -> GradientStatistics:
    return measure_task_at(Task(data, shards, learner, batch=batch), model, **more)


def world(name: str, counts: tuple[int, ...] = COUNTS, seed: int = 0) -> tuple[Examples, Shards]:
    """Clients whose examples have different centres; the rows are in random order."""
    rng, number = np.random.default_rng(seed), sum(counts)
    client = np.repeat(np.arange(len(counts)), counts)
    x = rng.normal(rng.normal(0, 1.5, (len(counts), 3))[client], 1.0).astype(np.float32)
    if name == "logistic":
        y: Any = rng.integers(0, 3, number)
    else:
        y = x @ rng.normal(size=3) + rng.normal(size=number)
    order = rng.permutation(number)
    data = Examples(x[np.argsort(order)], y[np.argsort(order)])
    return data, Shards.of(np.split(order, np.cumsum(counts)[:-1]))


def each(shards: Shards) -> list[Rows]:
    return [shards[client] for client in range(len(shards))]


def start_of(learner: Learner, seed: int = 3) -> Any:
    size = len(learner.start(np.random.default_rng(0)))
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def losses_of(learner: Learner, model: Any, data: Examples, shards: Shards) -> Floats:
    """Each client's mean loss."""
    return np.array([learner.losses(model, data, rows).mean(dtype=float) for rows in each(shards)])


class Plainer:
    """A learner that, like a network, has a gradient but no known minimum or curvature."""

    def __init__(self, inner: Learner) -> None:
        self._inner = inner

    def gradient(self, model: Any, data: Examples, rows: Rows, weight: Weights) -> Any:
        return self._inner.gradient(model, data, rows, weight)

    def save(self, model: Any) -> Any:
        return self._inner.save(model)


def plainer(inner: Learner) -> Any:
    return Plainer(inner)
