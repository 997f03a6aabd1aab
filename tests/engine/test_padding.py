"""Examples that a client does not hold have no part in what it learns."""

from __future__ import annotations

import numpy as np

import cafe
from cafe.data import Examples, Shards
from cafe.learn.mlp import MLP
from cafe.policies import fedavg


def test_an_example_that_nobody_holds_may_be_anything() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 6)), np.arange(40) % 2
    x[0] = np.nan
    shards = Shards.of([np.arange(1, 4), np.arange(4, 15), np.arange(15, 40)])
    task = cafe.Task(Examples(x, y), shards, MLP(6, 2, (4,)), batch=4, rate=0.1)
    federation = cafe.Federation(3, cafe.Exponential(rate=1.0))
    policy = fedavg(fraction=1.0, epochs=1, deadline=3.0)
    history = cafe.simulate(federation, policy, task, rounds=20)
    assert history.updates
    assert history.model is not None
    assert np.isfinite(history.model).all()
