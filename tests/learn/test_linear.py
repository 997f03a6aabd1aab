from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import cafe.learn.linear
import cafe.learn.newton
import cafe.learn.numpy_learner
from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.learn.convex import Convex
from cafe.learn.linear import Linear, Logistic, Ridge
from cafe.learn.local_steps import LocalSteps

steady = settings(derandomize=True, deadline=None, max_examples=40, database=None)

INPUTS = 4
LEARNERS: dict[str, Linear] = {
    "ridge of a value": Ridge(INPUTS, l2=0.05),
    "ridge of classes": Ridge(INPUTS, l2=0.05, classes=3),
    "logistic of 2": Logistic(INPUTS, classes=2, l2=0.05),
    "logistic of 3": Logistic(INPUTS, classes=3, l2=0.05),
}


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Linear:
    return LEARNERS[request.param]


def examples(learner: Linear, number: int = 30, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 1.0, (number, learner.inputs)).astype(np.float32)
    if learner.outputs == 1:
        return Examples(x, x @ rng.normal(size=learner.inputs) + rng.normal(size=number))
    return Examples(x, rng.integers(0, learner.outputs, number))


def models(learner: Linear, number: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(number, learner.size)).astype(np.float32)


# ------------------------------------------------------- the definitions, in float64, loss by loss


def losses(learner: Linear, model: Floats, data: Examples) -> Floats:
    model = np.asarray(model, dtype=float)
    weights, bias = model[: -learner.outputs], model[-learner.outputs :]
    z = data.x.astype(float) @ weights.reshape(learner.inputs, learner.outputs) + bias
    if isinstance(learner, Logistic):
        own = logsumexp(z, axis=1) - z[np.arange(len(data)), data.y]
    elif learner.outputs > 1:
        own = ((z - (data.y[:, None] == np.arange(learner.outputs))) ** 2).sum(axis=1) / 2
    else:
        own = (z[:, 0] - data.y) ** 2 / 2
    return np.asarray(own + learner.l2 / 2 * (model @ model))


def by_differences(function: Callable[[Floats], Floats], at: Floats, step: float = 1e-5) -> Floats:
    """The derivative of each of a function's values, a row per coordinate."""
    at, moves = np.asarray(at, dtype=float), step * np.eye(len(at))
    return np.array([(function(at + m) - function(at - m)) / (2 * step) for m in moves])


def gradients(learner: Linear, model: Floats, data: Examples) -> Floats:
    """A row per example."""
    return by_differences(lambda w: losses(learner, w, data), model).T


# --------------------------------------------------------------------------- gradients and scores


def test_gradient_by_differences(learner: Linear) -> None:
    data, rng = examples(learner), np.random.default_rng(1)
    rows, weight = rng.integers(0, 30, 50), rng.uniform(0, 1, 50).astype(np.float32)
    for model in models(learner, 3):
        expected = weight @ gradients(learner, model, data)[rows]
        found = learner.gradient(model, data, rows, weight)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_losses_and_score(learner: Linear) -> None:
    data = examples(learner)
    model, rows = models(learner, 1)[0], np.array([3, 3, 29])
    expected = losses(learner, model, data)
    found = learner.losses(model, data, rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected[rows], rtol=1e-5)
    assert learner.score(model, data).loss == pytest.approx(expected.mean(), rel=1e-5)


def test_accuracy_is_the_share_of_correct_classes() -> None:
    x = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    data = Examples(x, np.array([1, 0, 0, 0]))
    model = np.array([-1.0, 1.0, 0.0, 0.0], dtype=np.float32)  # class 1 where x > 0
    assert Logistic(1, 2, 0.1).score(model, data).accuracy == 0.75
    assert Ridge(1, 0.1, classes=2).score(model, data).accuracy == 0.75
    assert Ridge(1, 0.1).score(model[:2], data).accuracy is None


def test_large_outputs_do_not_overflow() -> None:
    data = Examples(np.array([[1e4], [-1e4]]), np.array([0, 1]))
    learner, model = Logistic(1, 2, 1e-9), np.array([-1.0, 1.0, 0, 0], dtype=np.float32)
    assert learner.score(model, data).loss == pytest.approx(2e4)
    assert np.all(np.isfinite(learner.gradient(model, data, np.arange(2), np.ones(2, np.float32))))


def test_images_are_flattened() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2, 2)).astype(np.float32), rng.integers(0, 3, 6)
    learner, model = LEARNERS["logistic of 3"], models(LEARNERS["logistic of 3"], 1)[0]
    flat = Examples(x.reshape(6, 4), y)
    assert learner.score(model, Examples(x, y)) == learner.score(model, flat)


def test_local_steps_are_gradient_descent(learner: Linear) -> None:
    data, rng = examples(learner), np.random.default_rng(4)
    local = LocalSteps(
        rng.integers(0, 30, (3, 4, 5)),
        rng.uniform(0, 0.4, (3, 4, 5)).astype(np.float32),
        rng.uniform(0.1, 0.3, (3, 4)).astype(np.float32),
    )
    local.rate[1, 2] = 0
    model = models(learner, 1)[0]
    ends = np.repeat(model[None].astype(float), 3, axis=0)
    for k in range(3):
        for s in range(4):
            each = gradients(learner, ends[k], data)[local.rows[k, s]]
            ends[k] -= local.rate[k, s] * (local.weight[k, s] @ each)
    np.testing.assert_allclose(learner.updates(model, data, local), ends - model, atol=1e-4)
    share = np.array([0.5, 2.0, 0.0], dtype=np.float32)
    np.testing.assert_allclose(
        learner.update(model, data, local, share), share @ (ends - model), atol=2e-4
    )


def test_fused_step_equals_separate_steps(learner: Linear) -> None:
    data, rng = examples(learner), np.random.default_rng(5)
    local = LocalSteps(
        rng.integers(0, 30, (4, 1, 6)),
        (rng.uniform(0, 1, (4, 1, 6)) * (rng.random((4, 1, 6)) < 0.7)).astype(np.float32),
        rng.uniform(0.1, 1, (4, 1)).astype(np.float32),
    )
    share, model = rng.normal(size=4).astype(np.float32), models(learner, 1)[0]
    np.testing.assert_allclose(
        learner.update(model, data, local, share),
        share @ learner.updates(model, data, local),
        atol=1e-4,
    )


def test_no_steps_give_no_update(learner: Linear) -> None:
    data, model = examples(learner), models(learner, 1)[0]
    nobody = LocalSteps(
        np.empty((0, 1, 2), dtype=np.intp),
        np.empty((0, 1, 2), np.float32),
        np.empty((0, 1), np.float32),
    )
    assert not np.any(learner.update(model, data, nobody, np.empty(0, np.float32)))
    assert learner.updates(model, data, nobody).shape == (0, learner.size)
    assert learner.losses(model, data, np.empty(0, dtype=np.intp)).shape == (0,)


def test_block_size_does_not_change_results(
    learner: Linear, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, rows = examples(learner), models(learner, 1)[0], np.arange(30)
    weight = np.random.default_rng(6).uniform(0, 1, 30)

    def everything() -> list[Floats]:
        best = learner.minimum(data, rows, weight)
        return [
            learner.gradient(model, data, rows, weight.astype(np.float32)),
            learner.losses(model, data, rows),
            np.array(learner.score(model, data).loss),
            np.array(learner.curvature(data, rows)),
            learner.spread(model, data, rows).gradient,
            np.array(learner.spread(model, data, rows).variance),
            best.model,
            np.array(best.loss),
        ]

    whole = everything()
    monkeypatch.setattr(cafe.learn.numpy_learner, "BLOCK_BYTES", 7 * 8 * (INPUTS + 3))
    monkeypatch.setattr(cafe.learn.linear, "BLOCK_BYTES", 7 * 8 * (INPUTS + 3))
    assert len(list(cafe.learn.numpy_learner.blocks(30, INPUTS))) > 2
    for one, other in zip(whole, everything(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# --------------------------------------------------------------- constants that the bounds need


@pytest.mark.parametrize("each", LEARNERS.values(), ids=LEARNERS)
def test_linear_learners_are_convex(each: object) -> None:
    assert isinstance(each, Convex)


@pytest.mark.parametrize("number", [3, 4, 5, 30])
def test_curvature_bounds_the_hessian_everywhere(learner: Linear, number: int) -> None:
    data, rows = examples(learner, number), np.arange(number)
    low, high = learner.curvature(data, rows)
    assert low >= learner.l2
    for scale, model in zip((0, 1, 5), models(learner, 3), strict=True):
        hessian = by_differences(
            lambda w: gradients(learner, w, data).mean(axis=0), scale * model, step=1e-3
        )
        values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
        slack = 1e-4 * high
        assert values[-1] <= high + slack
        assert values[0] == pytest.approx(low, abs=slack)
        # Two classes have probability 1/2 each at zero.
        if isinstance(learner, Ridge) or (learner.outputs == 2 and scale == 0):
            assert values[-1] == pytest.approx(high, abs=slack)


def test_hessian_of_a_softmax_is_at_most_one_half() -> None:
    """The bound is attained if two of many classes share all the probability."""
    rng = np.random.default_rng(0)
    for p in [*rng.dirichlet([0.3] * 5, 200), np.array([0.5, 0.5, 0, 0, 0])]:
        largest = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]
        assert largest <= Logistic.output_curvature[1] + 1e-12
    assert largest == pytest.approx(Logistic.output_curvature[1])


def test_spread_of_gradients(learner: Linear) -> None:
    data, rows = examples(learner), np.array([0, 1, 1, 7, 20, 29])
    for model in models(learner, 3):
        each = gradients(learner, model, data)[rows]
        found = learner.spread(model, data, rows)
        np.testing.assert_allclose(found.gradient, each.mean(axis=0), atol=1e-7)
        assert found.variance == pytest.approx(each.var(axis=0).sum(), rel=1e-6)
        assert learner.spread(model, data, rows[:1]).variance == pytest.approx(0, abs=1e-9)


@steady
@given(
    st.integers(1, 12), st.integers(1, 6), st.floats(1e-3, 10), st.sampled_from([0, 2, 3]),
    st.integers(0, 10**6),
)  # fmt: skip
def test_ridge_optimum_has_the_least_loss(
    number: int, inputs: int, l2: float, classes: int, seed: int
) -> None:
    """With more inputs than examples and with fewer, any weights."""
    learner, rng = Ridge(inputs, l2, classes), np.random.default_rng(seed)
    x = rng.normal(size=(number, inputs)).astype(np.float32)
    data = Examples(x, rng.integers(0, classes, number) if classes else rng.normal(size=number))
    rows, weight = rng.integers(0, number, number), rng.uniform(0.1, 2, number)
    best = learner.minimum(data, rows, weight)

    def total(model: Floats) -> float:
        return float(weight @ losses(learner, model, data)[rows])

    assert best.loss == pytest.approx(total(best.model), rel=1e-10)
    slope = by_differences(lambda w: np.array(total(w)), best.model)
    assert np.linalg.norm(slope) <= 1e-6 * (1 + weight.sum())
    for away in rng.normal(size=(5, learner.size)):
        moved = total(best.model + 0.1 * away)
        assert moved >= best.loss + weight.sum() * l2 / 2 * 0.01 * (away @ away) * (1 - 1e-6)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize(("number", "inputs"), [(3, 8), (40, 3)])
def test_logistic_optimum_has_the_least_loss(classes: int, number: int, inputs: int) -> None:
    learner, rng = Logistic(inputs, classes, 0.01), np.random.default_rng(classes)
    x = rng.normal(0.5, 2.0, (number, inputs)).astype(np.float32)
    data = Examples(x, rng.integers(0, classes, number))
    rows, weight = rng.integers(0, number, 50), rng.uniform(0.1, 2, 50)
    best = learner.minimum(data, rows, weight)
    assert best.loss == pytest.approx(weight @ losses(learner, best.model, data)[rows], rel=1e-12)

    def slope(model: Floats) -> Floats:
        return np.asarray(weight @ gradients(learner, model, data)[rows])

    assert np.linalg.norm(slope(best.model)) <= 1e-8 * np.linalg.norm(slope(0 * best.model)) + 1e-7
    for away in rng.normal(size=(5, learner.size)):
        moved = weight @ losses(learner, best.model + 0.1 * away, data)[rows]
        assert moved >= best.loss + weight.sum() * learner.l2 / 2 * 0.01 * (away @ away) * (
            1 - 1e-6
        )


def test_weights_are_equivalent_to_repetitions(learner: Linear) -> None:
    data = examples(learner)
    once, twice = np.arange(10), np.repeat(np.arange(10), np.arange(10) % 2 + 1)
    one = learner.minimum(data, once, (np.arange(10) % 2 + 1) / 15.0)
    other = learner.minimum(data, twice, np.full(15, 1 / 15))
    np.testing.assert_allclose(one.model, other.model, atol=1e-6)
    assert one.loss == pytest.approx(other.loss, rel=1e-10)


def test_model_without_gradient_is_the_optimum() -> None:
    data = Examples(np.array([[1.0], [1.0]]), np.array([0, 1]))
    best = Logistic(1, 2, 0.1).minimum(data, np.arange(2), np.full(2, 0.5))
    np.testing.assert_array_equal(best.model, np.zeros(4))
    assert best.loss == pytest.approx(np.log(2))


def test_optimum_is_found_for_inputs_of_any_scale() -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(40, 5)) * [1e-3, 1, 1, 1e3, 1e6]).astype(np.float32)
    data, learner = Examples(x, rng.integers(0, 2, 40)), Logistic(5, 2, 1e-4)
    best = learner.minimum(data, np.arange(40), np.full(40, 1 / 40))
    slope = learner.spread(best.model, data, np.arange(40)).gradient
    assert slope @ slope / (2 * learner.l2) <= 1e-9 * best.loss


def test_an_optimum_that_is_not_found_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cafe.learn.newton, "MOST_STEPS", 1)
    learner = LEARNERS["logistic of 3"]
    with pytest.raises(InputError, match=r"after 1 steps .*Scale the inputs.* or raise l2"):
        learner.minimum(examples(learner), np.arange(30), np.full(30, 1 / 30))


@pytest.mark.parametrize(("classes", "l2"), [(2, 1e-1), (2, 1e-3), (10, 1e-2)])
def test_logistic_agrees_with_scikit_learn(classes: int, l2: float) -> None:
    """Scikit-learn uses C = 1/(n l2) and no l2 on its bias: ours becomes a column of ones.

    For two classes it has one vector w, where CAFe has w/2 and -w/2: half the penalty.
    """
    datasets = pytest.importorskip("sklearn.datasets")
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression
    x, y = datasets.load_digits(return_X_y=True)
    keep = y < classes
    data = Examples((x[keep][:600] / 16).astype(np.float32), y[keep][:600])
    number = len(data)
    learner = Logistic(64, classes, l2)
    best = learner.minimum(data, np.arange(number), np.full(number, 1 / number))

    strength = (2 if classes == 2 else 1) / (number * l2)
    theirs = model(C=strength, fit_intercept=False, tol=1e-7, max_iter=10_000)
    theirs.fit(np.hstack([data.x, np.ones((number, 1))]), data.y)
    columns = theirs.coef_.T
    if classes == 2:
        columns = np.hstack([-columns, columns]) / 2
    assert best.loss == pytest.approx(losses(learner, columns.ravel(), data).mean(), rel=1e-7)
    assert best.loss <= losses(learner, columns.ravel(), data).mean() * (1 + 1e-10)
    np.testing.assert_allclose(best.model, columns.ravel(), atol=1e-3 * np.abs(columns).max())


# -------------------------------------------------------------------------------------- bad inputs


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ridge(3, 0.0), "l2 must be a positive number"),
        (lambda: Logistic(3, 2, -1.0), "l2 must be a positive number"),
        (lambda: Logistic(3, 2, np.nan), "l2 must be a positive number"),
        (lambda: Logistic(3, 1, 0.1), "classes must be a whole number from 2 up"),
        (lambda: Ridge(3, 0.1, classes=1), "classes must be at least 2, or 0"),
        (lambda: Ridge(0, 0.1), "inputs must be a whole number from 1 up"),
        (lambda: Ridge(2.5, 0.1), "inputs must be a whole number from 1 up"),  # type: ignore[arg-type]
    ],
)
def test_invalid_learners_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_unsuitable_examples_are_refused() -> None:
    values = Examples(np.zeros((3, 4), np.float32), np.array([0.5, 1.0, 2.0]))
    many = Examples(np.zeros((3, 4), np.float32), np.array([0, 1, 7]))
    for learner in (LEARNERS["logistic of 3"], LEARNERS["ridge of classes"]):
        model = learner.start(np.random.default_rng(0))
        with pytest.raises(InputError, match=r"with 3 classes needs .* from 0 to 2. Got values"):
            learner.score(model, values)
        with pytest.raises(InputError, match="Got classes up to 7"):
            learner.gradient(model, many, np.arange(3), np.ones(3, np.float32))
