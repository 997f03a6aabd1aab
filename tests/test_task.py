"""A task raises errors for parts that do not fit, and scales objectives as the paper does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.errors import InputError
from cafe.learn.linear import Logistic
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam, Momentum


def make(**changes: Any) -> cafe.Task:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "data": Examples(rng.normal(size=(10, 2)), rng.integers(2, size=10)),
        "shards": Shards(np.arange(10), np.array([0, 2, 10])),
        "learner": Logistic(2, 2, l2=0.1),
    }
    return cafe.Task(**given | changes)


def test_scale_and_objective() -> None:
    task = make()
    np.testing.assert_allclose(task.scale, [0.4, 1.6])
    model = np.random.default_rng(1).normal(size=6).astype(np.float32)
    by_client = [
        scale * task.learner.score(model, task.data.take(task.shards[k])).loss
        for k, scale in enumerate(task.scale)
    ]
    assert task.objective(model) == pytest.approx(np.mean(by_client), rel=1e-5)


def test_an_example_held_twice_counts_twice() -> None:
    shards = Shards(np.array([0, 0, 1]), np.array([0, 2, 3]))
    task = make(shards=shards)
    model = np.ones(6, dtype=np.float32)
    losses = task.learner.losses(model, task.data, np.array([0, 1]))
    assert task.objective(model) == pytest.approx((2 * losses[0] + losses[1]) / 3, rel=1e-5)


def test_rates() -> None:
    assert make(rate=0.2).rate_at(5, 3) == 0.2
    decaying = LearningRate(2.0, 3.0)
    assert make(rate=decaying).rate_at(0, 0) == pytest.approx(0.5)
    assert make(rate=decaying).rate_at(5, 3) == pytest.approx(2 / 9)
    assert make(rate=decaying, per="update").rate_at(5, 3) == pytest.approx(2 / 7)
    assert make(rate=lambda _: np.float32(0.0)).rate_at(5, 3) == 0.0
    for wrong in (float("nan"), -1.0, None, "fast"):
        with pytest.raises(InputError, match=r"rate\(6\) must be a number, 0 or more"):
            make(rate=lambda _, wrong=wrong: wrong).rate_at(5, 3)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"batch": 0}, "A batch must be a whole number"),
        ({"batch": 2.5}, "A batch must be a whole number"),
        ({"rate": 0.0}, "must be a positive number"),
        ({"rate": float("nan")}, "must be a positive number"),
        ({"per": "rond"}, "Did you mean 'round'"),
        ({"shards": Shards(np.array([10]), np.array([0, 1]))}, "Got 10: .* other examples"),
        ({"shards": Shards(np.array([5, -1, 3]), np.array([0, 3]))}, "Got -1: .* other examples"),
    ],
)
def test_invalid_tasks_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        make(**changes)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [(Momentum, {"rate": 0.0}), (Momentum, {"momentum": 1.0}), (Adam, {"floor": -1.0}),
     (Adam, {"second": 1.5})],
)  # fmt: skip
def test_invalid_server_optimisers_are_refused(kind: Any, changes: dict[str, float]) -> None:
    with pytest.raises(InputError, match="A server optimiser's"):
        kind(**changes)
