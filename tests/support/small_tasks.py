"""Small federations and tasks for tests of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

import cafe
from cafe.data.examples import Examples, Shards
from cafe.learn.linear import Logistic
from cafe.learn.quadratic import Quadratic


def logistic_task(clients: int, learner: Logistic | None = None, **changes: Any) -> cafe.Task:
    rng = np.random.default_rng(8)
    data = Examples(rng.normal(size=(200, 3)), rng.integers(2, size=200))
    shards = Shards.of([rng.choice(200, 20) for _ in range(clients)])
    return cafe.Task(data, shards, learner or Logistic(3, 2, l2=0.1), batch=5, **changes)


def taking(*times: float) -> cafe.Federation:
    return cafe.Federation(len(times), cafe.Constant(np.array(times)))


def points(*at: float) -> Examples:
    return Examples(np.array(at)[:, None], np.zeros(len(at)))


def drawn(*at: float, clients: int = 1, **more: Any) -> cafe.Task:
    """A model that starts at 0 and moves to the mean of the points; all clients hold all points."""
    given: dict[str, Any] = {"rate": 0.5} | more
    shards = Shards.of([np.arange(len(at))] * clients)
    return cafe.Task(points(*at), shards, Quadratic(1), **given)
