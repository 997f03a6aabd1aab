"""Local steps with prox, offset and frozen parameters, and a plain loop to compare with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples
from cafe.learn.base import Learner
from cafe.learn.local_steps import LocalSteps

Vector = NDArray[np.float64]


INPUTS, CLASSES, ROWS = 6, 3, 40


def examples(seed: int = 1) -> Examples:
    rng = np.random.default_rng(seed)
    return Examples(
        rng.standard_normal((ROWS, INPUTS), np.float32), rng.integers(CLASSES, size=ROWS)
    )


def a_model(learner: Learner) -> NDArray[np.float32]:
    rng = np.random.default_rng(2)
    start = learner.save(learner.start(rng))
    return start + 0.3 * rng.standard_normal(start.size, np.float32)


def ragged_steps(clients: int = 5, steps: int = 7, batch: int = 4, seed: int = 3) -> LocalSteps:
    """Batches and local steps of many lengths.

    One client takes no step, one skips its first step, and one has a step without an example.
    """
    rng = np.random.default_rng(seed)
    shape = (clients, steps, batch)
    weight = rng.uniform(0.1, 0.5, shape).astype(np.float32)
    rate = rng.uniform(0.05, 0.2, shape[:2]).astype(np.float32)
    weight[np.arange(batch) >= rng.integers(1, batch + 1, (clients, steps, 1))] = 0.0
    rate[np.arange(steps) >= rng.integers(1, steps + 1, (clients, 1))] = 0.0
    rate[0], rate[0, 0] = 0.1, 0.0
    rate[-1] = 0.0
    weight[0, steps // 2] = 0.0  # a step with prox and offset only
    weight[0, -1] = 0.0
    return LocalSteps(rng.integers(0, ROWS, shape), weight, rate)


def with_terms(local: LocalSteps, size: int, *names: str, seed: int = 5) -> LocalSteps:
    rng = np.random.default_rng(seed)
    terms: dict[str, Any] = {
        "prox": rng.uniform(0.0, 4.0, local.rate.shape).astype(np.float32),
        "offset": rng.standard_normal((len(local), size), np.float32),
        "frozen": rng.random(size) < 0.4,
    }
    return replace(local, **{name: terms[name] for name in names})


def slow_updates(
    learner: Learner, model: NDArray[np.float32], data: Examples, local: LocalSteps
) -> Vector:
    """One client and one step at a time, in float64."""
    moves = np.zeros((len(local), model.size))
    for k, d in enumerate(moves):
        for s in range(local.rate.shape[1]):
            at = learner.load((model + d).astype(np.float32))
            rows, weight = local.rows[k, s], local.weight[k, s]
            step = learner.save(learner.gradient(at, data, rows, weight)).astype(float)
            if local.prox is not None:
                step += float(local.prox[k, s]) * d
            if local.offset is not None:
                step += local.offset[k]
            if local.frozen is not None:
                step[local.frozen] = 0.0
            d -= float(local.rate[k, s]) * step
    return moves


def near(found: NDArray[np.float32], wanted: Vector, tolerance: float = 3e-5) -> None:
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max() + 1e-12)
