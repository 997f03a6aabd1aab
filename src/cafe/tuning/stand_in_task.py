"""A small task for policies that look at training: a plan needs their decisions, no model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cafe.data.examples import Examples, Shards
from cafe.learn.linear import Logistic
from cafe.randomness import Stream
from cafe.rounds.policy import PER_CLIENT_NEEDS, Policy
from cafe.task import Task

SCORED = 100  # examples on which the model is evaluated


def unmet_needs(policy: Policy) -> tuple[str, ...]:
    """What a policy needs to know that exists only with a task."""
    return tuple(sorted(policy.needs & (PER_CLIENT_NEEDS | {"scores"})))


@lru_cache(maxsize=1)
def stand_in_task(clients: int) -> Task:
    """A classification task with three classes and few numbers; every client has its own one."""
    rng = Stream(7, "stand-in task").at(0)
    labels = np.repeat(rng.integers(3, size=clients), 2)
    points = rng.normal(size=(2 * clients, 2)) + np.eye(3, 2)[labels]
    held = np.arange(2 * clients).reshape(clients, 2)
    data = Examples(points, labels)
    some = data.take(np.arange(min(len(data), SCORED)))
    return Task(data, Shards.of([*held]), Logistic(2, 3, l2=0.01), some, batch=None, rate=0.1)
