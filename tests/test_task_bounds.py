"""The bounds with measured constants hold for runs, and no constant is too large."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cafe.data.examples import Examples, Shards
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.latency.base import Floats
from cafe.learn.linear import Ridge
from cafe.learn.quadratic import Quadratic
from cafe.learn.schedules import LearningRate
from cafe.task_constants import TaskConstants
from cafe.theory import (
    Setting,
    Variance,
    bound,
    bound_as_printed,
    learning_rate,
    learning_rate_as_printed,
)
from tests.support.convex_tasks import (
    HESSIAN,
    measure,
    world,
)

QUORUM, DEADLINE, ROUNDS, RUNS = 2, 0.7, 120, 40


def mean_gaps(
    learner: Quadratic | Ridge,
    found: TaskConstants,
    data: Examples,
    shards: Shards,
    start: Any,
    batch: int | None,
    rate: LearningRate,
) -> tuple[Floats, Floats]:
    """E[F(w_t)] - F* of the paper's MCU scheme with memoryless clients, and its standard error.

    Both losses are squares, so that F(w) - F* is half the Hessian's form of w - w*, without
    cancellation.
    """
    rng, gaps = np.random.default_rng(11), np.zeros((RUNS, ROUNDS))
    points = data.x[shards.rows].astype(float)
    for run in range(RUNS):
        model = np.array(start, dtype=np.float32)
        for t in range(1, ROUNDS + 1):
            away = model - found.model
            if isinstance(learner, Quadratic):
                gaps[run, t - 1] = np.sum(np.asarray(learner.hessian) * away**2) / 2
            else:
                turn = points @ away[:-1] + away[-1]
                gaps[run, t - 1] = (np.mean(turn**2) + learner.l2 * away @ away) / 2
            reports = np.flatnonzero(rng.exponential(1.0, len(shards)) <= DEADLINE).tolist()
            if len(reports) < QUORUM:
                continue
            drawn = [shards[k] if batch is None else rng.choice(shards[k], batch) for k in reports]
            rows = np.concatenate(drawn)
            weight = np.full(len(rows), 1 / len(rows), dtype=np.float32)
            model = model - np.float32(rate(t)) * learner.gradient(model, data, rows, weight)
    return gaps.mean(axis=0), gaps.std(axis=0) / np.sqrt(RUNS)


def terms(clients: int) -> Variance:
    return Variance.of(Setting(Federation(clients, Exponential(1.0)), QUORUM, DEADLINE))


@pytest.mark.parametrize("far", [True, False])
@pytest.mark.parametrize("name", ["quadratic", "ridge"])
@pytest.mark.slow
def test_measured_constants_bound_a_run(name: str, far: bool) -> None:
    """MCU, equal clients, one step: both bounds, each with its own learning-rate schedule."""
    learner = Quadratic(3, HESSIAN) if name == "quadratic" else Ridge(3, 0.5)
    data, shards = world(name, (8,) * 6)
    optimum = measure(learner, data, shards).model.astype(np.float32)
    start = optimum + np.float32(4) if far else optimum
    found = measure(learner, data, shards, batch=2, start=start)
    problem, t, args = found.problem(), np.arange(1, ROUNDS + 1), (6, 1.0, QUORUM, DEADLINE)
    for limit, rate in (
        (bound(problem, terms(6), t), learning_rate(problem, terms(6))),
        (bound_as_printed(problem, *args, t), learning_rate_as_printed(problem, *args)),
    ):
        gap, error = mean_gaps(learner, found, data, shards, start, 2, rate)
        assert np.all(gap + 4 * error <= limit + 1e-9)


@pytest.mark.parametrize("cause", ["noise", "heterogeneity", "distance"])
def test_no_constant_is_ten_times_too_large(cause: str) -> None:
    """With L = mu and only one cause of a gap, the bound fails with a tenth of its constant."""
    data, shards = world("quadratic", (8,) * 6)
    if cause != "heterogeneity":
        shards = Shards.of([shards[0]] * 6)
    learner, batch = Quadratic(3), 2 if cause == "noise" else None
    start = measure(learner, data, shards).model.astype(np.float32)
    if cause == "distance":
        start = start + np.float32(1)
    found = measure(learner, data, shards, batch=batch, start=start)
    problem, t = found.problem(), np.arange(1, ROUNDS + 1)
    rate = learning_rate(problem, terms(6))
    gap, error = mean_gaps(learner, found, data, shards, start, batch, rate)
    assert np.all(gap + 4 * error <= bound(problem, terms(6), t) + 1e-9)
    less = replace(problem, **{cause: getattr(problem, cause) / 10})
    assert np.any(gap - 4 * error > bound(less, terms(6), t))
