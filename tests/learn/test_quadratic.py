from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.data.examples import Examples, Rows
from cafe.errors import InputError
from cafe.learn.convex import Convex
from cafe.learn.local_steps import LocalSteps
from cafe.learn.quadratic import Quadratic

HESSIAN = np.array([0.5, 1.0, 3.0])


def points(number: int = 20, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    return Examples(rng.normal(1.0, 2.0, (number, 3)).astype(np.float32), np.zeros(number))


def loss(model: Any, data: Examples, rows: Rows, weight: Any) -> float:
    """The loss by its definition, in float64."""
    away = model - data.x[rows].astype(float)
    return float(weight @ np.einsum("ij,j,ij->i", away, HESSIAN, away)) / 2


def test_gradient_by_differences() -> None:
    rng, data, learner = np.random.default_rng(1), points(), Quadratic(3, HESSIAN)
    rows, weight = rng.integers(0, 20, 30), rng.uniform(0, 1, 30).astype(np.float32)
    model = rng.normal(size=3).astype(np.float32)
    steps = 1e-4 * np.eye(3)
    slopes = [
        (loss(model + s, data, rows, weight) - loss(model - s, data, rows, weight)) / 2e-4
        for s in steps
    ]
    found = learner.gradient(model, data, rows, weight)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slopes, rtol=1e-5)


def test_losses_and_score() -> None:
    data, learner, model = points(), Quadratic(3, HESSIAN), np.ones(3, dtype=np.float32)
    each = [loss(model, data, np.array([i]), np.ones(1)) for i in range(20)]
    rows = np.array([3, 3, 7])
    np.testing.assert_allclose(learner.losses(model, data, rows), np.take(each, rows), rtol=1e-6)
    score = learner.score(model, data)
    assert score.loss == pytest.approx(np.mean(each), rel=1e-6)
    assert score.accuracy is None


def test_steps_towards_one_point_reduce_the_distance_geometrically() -> None:
    """With one point per client, s steps leave (1 - rate hessian)^s of the way to it."""
    data, learner = points(), Quadratic(3, HESSIAN)
    rate = np.array([0.1, 0.2], dtype=np.float32)
    rows = np.array([4, 9])
    local = LocalSteps(
        np.repeat(rows[:, None, None], 5, axis=1),
        np.ones((2, 5, 1), dtype=np.float32),
        np.repeat(rate[:, None], 5, axis=1),
    )
    model = np.array([3.0, -1.0, 0.5], dtype=np.float32)
    before = model.copy()
    ends = data.x[rows] + (1 - rate[:, None] * HESSIAN) ** 5 * (model - data.x[rows])
    np.testing.assert_allclose(learner.updates(model, data, local), ends - model, rtol=1e-5)
    share = np.array([0.3, 0.9], dtype=np.float32)
    np.testing.assert_allclose(
        learner.update(model, data, local, share), share @ (ends - model), rtol=1e-5
    )
    np.testing.assert_array_equal(model, before)


def test_fused_step_equals_separate_steps() -> None:
    rng, data, learner = np.random.default_rng(2), points(), Quadratic(3, HESSIAN)
    local = LocalSteps(
        rng.integers(0, 20, (4, 1, 6)),
        rng.uniform(0, 1, (4, 1, 6)).astype(np.float32),
        rng.uniform(0.1, 1, (4, 1)).astype(np.float32),
    )
    share, model = rng.normal(size=4).astype(np.float32), np.ones(3, dtype=np.float32)
    np.testing.assert_allclose(
        learner.update(model, data, local, share),
        share @ learner.updates(model, data, local),
        rtol=1e-4,
    )


def test_padding_changes_nothing() -> None:
    rng, data, learner = np.random.default_rng(3), points(), Quadratic(3, HESSIAN)
    rows, weight = rng.integers(0, 20, (3, 2, 4)), np.full((3, 2, 4), 0.25, dtype=np.float32)
    rate = np.full((3, 2), 0.3, dtype=np.float32)
    padded = LocalSteps(
        np.pad(rows, ((0, 0), (0, 1), (0, 2))),
        np.pad(weight, ((0, 0), (0, 1), (0, 2))),
        np.pad(rate, ((0, 0), (0, 1))),
    )
    padded.weight[:, 2] = 1.0  # steps that are not taken: their rate is 0
    model, share = np.ones(3, dtype=np.float32), np.array([1, 0, 2], dtype=np.float32)
    plain = LocalSteps(rows, weight, rate)
    np.testing.assert_array_equal(
        learner.updates(model, data, plain), learner.updates(model, data, padded)
    )
    np.testing.assert_array_equal(
        learner.update(model, data, plain, share), learner.update(model, data, padded, share)
    )


def test_exact_minimum_curvature_and_spread() -> None:
    data, learner, rows = points(), Quadratic(3, HESSIAN), np.array([1, 2, 2, 5, 8])
    x = data.x[rows].astype(float)
    assert isinstance(learner, Convex)
    assert learner.curvature(data, rows) == (0.5, 3.0)

    weight = np.array([0.5, 1.0, 1.0, 0.2, 0.4])
    best = learner.minimum(data, rows, weight)
    np.testing.assert_allclose(best.model, np.average(x, axis=0, weights=weight), rtol=1e-12)
    assert best.loss == pytest.approx(loss(best.model, data, rows, weight), rel=1e-12)

    model = np.array([1.0, 2.0, 3.0])
    found = learner.spread(model, data, rows)
    each = HESSIAN * (model - x)
    np.testing.assert_allclose(found.gradient, each.mean(axis=0), rtol=1e-12)
    assert found.variance == pytest.approx(each.var(axis=0).sum(), rel=1e-12)


def test_hessian_is_1_by_default() -> None:
    data, model = points(), np.zeros(3, dtype=np.float32)
    assert Quadratic(3).curvature(data, np.arange(3)) == (1.0, 1.0)
    half = (data.x.astype(float) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(Quadratic(3).losses(model, data, np.arange(20)), half, rtol=1e-6)
    np.testing.assert_array_equal(Quadratic(3).start(np.random.default_rng(0)), model)


def test_a_model_is_saved_and_loaded() -> None:
    learner, model = Quadratic(3), np.array([1, 2, 3], dtype=np.float32)
    saved = learner.save(model)
    np.testing.assert_array_equal(learner.load(saved), model)
    assert saved is not model
    with pytest.raises(InputError, match=r"3 parameters.*shape \(4,\)"):
        learner.load(np.zeros(4, dtype=np.float32))


@pytest.mark.parametrize(
    ("hessian", "message"),
    [
        ([1.0, 0.0, 1.0], "above 0"),
        ([1.0, np.nan, 1.0], "above 0"),
        ([1.0, 2.0], r"one per input \(3\)"),
        ("1", "one number or one per input"),
    ],
)
def test_bad_hessians_are_refused(hessian: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Quadratic(3, hessian)  # type: ignore[arg-type]


def test_bad_inputs_are_refused() -> None:
    with pytest.raises(InputError, match="inputs must be a whole number from 1 up"):
        Quadratic(0)
    with pytest.raises(InputError, match=r"takes 4 inputs per example\. Got examples of 3"):
        Quadratic(4).score(np.zeros(4, dtype=np.float32), points())
