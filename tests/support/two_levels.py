"""Clusters, policies and tasks for tests of two levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import cafe
from cafe import Cluster, Levels
from cafe.data.examples import Examples, Shards
from cafe.decisions import DropAll, Everyone, Mean, closing
from cafe.learn.linear import Logistic
from cafe.learn.quadratic import Quadratic
from cafe.policies import agu, awu, mcu
from cafe.rounds import Policy, Work


def everyone(steps: int = 1, **changes: Any) -> Policy:
    """A policy that waits for all clients."""
    work = Work(steps, **changes)
    return Policy(
        "everyone", Everyone(work), merge=Mean(), carry=DropAll(), **closing(1, None, all_in=True)
    )


def points(by_client: Sequence[float], **changes: Any) -> cafe.Task:
    """One example per client: a step moves the model half of the way to the client's point."""
    data = Examples(np.array(by_client, dtype=float)[:, None], np.zeros(len(by_client)))
    shards = Shards.of([np.array([k]) for k in range(len(by_client))])
    given: dict[str, Any] = {"batch": None, "rate": 0.5} | changes
    return cafe.Task(data, shards, Quadratic(1), **given)


def slow_and_fast() -> list[Cluster]:
    """A client that takes 1, and one that takes 2."""
    return [
        Cluster(cafe.Federation(1, cafe.Constant(time)), mcu(quorum=1, deadline=time))
        for time in (1.0, 2.0)
    ]


def model(levels: Levels) -> float:
    assert levels.model is not None
    return float(levels.model[0])


# ---------------------------------------------------------------- a slow reference


def examples(clients: int, seed: int = 3) -> cafe.Task:
    """Shards of unequal sizes."""
    rng = np.random.default_rng(seed)
    data = Examples(rng.normal(size=(200, 3)), rng.integers(2, size=200))
    shards = Shards.of([rng.choice(200, rng.integers(4, 30)) for _ in range(clients)])
    return cafe.Task(data, shards, Logistic(3, 2, l2=0.1), batch=5, rate=lambda t: 1.0 / (1.0 + t))


INNER = [
    mcu(quorum=2, deadline=0.6),
    mcu(quorum=2, deadline=0.5, late="keep"),
    agu(quorum=3, deadline=0.6),
    awu(quorum=1, deadline=0.8, steps=2),
]
