"""Training: in special cases the schemes equal each other and plain gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.learn.linear import Logistic
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds import History

ALWAYS = cafe.Constant(0.1)


def examples(rows: int = 120) -> Examples:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 5))
    return Examples(x, (x[:, 0] + x[:, 1] ** 2 + rng.normal(size=rows) > 0.8).astype(int))


def uneven(clients: int, rows: int = 120) -> Shards:
    """Every row once, in shards from small to large."""
    rng = np.random.default_rng(2)
    cuts = np.sort(rng.choice(np.arange(1, rows), clients - 1, replace=False))
    return Shards(rng.permutation(rows), np.concatenate([[0], cuts, [rows]]))


def task(clients: int, **changes: Any) -> cafe.Task:
    given: dict[str, Any] = {"learner": Logistic(5, 2, l2=0.05), "rate": 0.5, "batch": 6} | changes
    return cafe.Task(examples(), uneven(clients), **given)


def model(history: History) -> Any:
    assert history.model is not None
    return history.model


def test_mcu_with_all_clients_is_gradient_descent_on_the_pooled_data() -> None:
    """Also with shards of different sizes, because of the factor N |D_k| / sum |D|."""
    what = task(7, batch=None, rate=LearningRate(4.0, 5.0))
    who = cafe.Federation(7, ALWAYS)
    history = cafe.simulate(who, mcu(quorum=7, deadline=1.0), what, rounds=30)
    rows = np.arange(120)
    weight = np.full(120, 1 / 120, dtype=np.float32)
    w = what.learner.start(np.random.default_rng(0))
    for t in range(1, 31):
        w = w - what.learner.gradient(w, what.data, rows, weight) * (4.0 / (5.0 + t))
    np.testing.assert_allclose(model(history), w, rtol=1e-4, atol=1e-6)
    assert history.loss == pytest.approx(what.objective(w), rel=1e-5)


def test_agu_is_mcu_when_one_report_is_enough() -> None:
    who = cafe.Federation(9, cafe.Exponential(0.4), availability=0.9)
    what = task(9)
    ours = cafe.simulate(who, agu(quorum=1, deadline=0.2), what, rounds=80, seed=4)
    theirs = cafe.simulate(who, mcu(quorum=1, deadline=0.2), what, rounds=80, seed=4)
    assert 0 < theirs.updates < 80  # rounds fail only without reports: nothing to carry
    assert model(ours).tobytes() == model(theirs).tobytes()
    np.testing.assert_array_equal(ours.by_round["waste"], theirs.by_round["waste"])


def test_agu_with_a_union_accumulates_gradients() -> None:
    """A constant gradient makes the sums visible: each report adds one step to its client."""
    who = cafe.Federation(6, cafe.Exponential(1.0))
    what = task(6, learner=Linear(), rate=1.0, batch=None)
    round_pool = cafe.simulate(who, agu(quorum=5, deadline=0.8), what, updates=4, seed=1)
    union = cafe.simulate(who, agu(quorum=5, deadline=0.8, pool="union"), what, updates=4, seed=1)
    plain = cafe.simulate(who, mcu(quorum=5, deadline=0.8), what, updates=4, seed=1)
    assert plain.rounds > 8
    assert abs(model(round_pool)[0]) > abs(model(plain)[0])
    assert union.fates["failed"] == 0
    assert union.fates["fresh"] >= round_pool.fates["fresh"] > plain.fates["fresh"]


class Linear:
    """Loss x[0] * w: the same gradient at every model."""

    def start(self, rng: np.random.Generator) -> Any:
        return np.zeros(1, dtype=np.float32)

    def gradient(self, model: Any, data: Examples, rows: Any, weight: Any) -> Any:
        return np.array([weight.sum()], dtype=np.float32)

    def update(self, model: Any, data: Examples, local: Any, coefficient: Any) -> Any:
        return coefficient @ self.updates(model, data, local)

    def updates(self, model: Any, data: Examples, local: Any) -> Any:
        return -(local.rate * local.weight.sum(axis=2)).sum(axis=1, keepdims=True)

    def score(self, model: Any, data: Examples) -> Any:
        return cafe.learn.Score(float(model[0]), None)

    def losses(self, model: Any, data: Examples, rows: Any) -> Any:
        return np.full(len(rows), model[0])

    def save(self, model: Any) -> Any:
        return model

    def load(self, saved: Any) -> Any:
        return saved


@pytest.mark.slow
def test_unbiased_awu_moves_by_the_mean_gradient() -> None:
    """With a constant gradient its expected step is the full one, even if clients are unequal."""
    who = cafe.Federation.exponential(np.array([2.0, 1.0, 0.5, 0.2, 0.1, 3.0]))
    what = task(6, learner=Linear(), rate=1.0)
    history = cafe.simulate(who, awu(deadline=1.0, weight="unbiased"), what, rounds=3000, seed=3)
    assert model(history)[0] == pytest.approx(-3000, rel=0.02)


def test_fedavg_is_plain_averaging_of_local_epochs() -> None:
    who, what = cafe.Federation(5, ALWAYS), task(5, batch=None, rate=0.7)
    history = cafe.simulate(who, fedavg(fraction=1.0, epochs=3, deadline=1.0), what, rounds=2)
    learner = what.learner
    w = learner.start(np.random.default_rng(0))
    for _ in range(2):
        ends = []
        for client in range(5):
            rows, v = what.shards[client], w
            weight = np.full(len(rows), 1 / len(rows), dtype=np.float32)
            for _ in range(3):
                v = v - 0.7 * learner.gradient(v, what.data, rows, weight)
            ends.append(v * (len(rows) / 120))
        w = np.sum(ends, axis=0)
    np.testing.assert_allclose(model(history), w, rtol=1e-4, atol=1e-6)


def test_the_divisor_of_fedavg_makes_a_smaller_step() -> None:
    who, what = cafe.Federation(5, ALWAYS), task(5, learner=Linear(), rate=1.0)
    steps = {
        divisor: model(
            cafe.simulate(
                who, fedavg(fraction=0.4, steps=1, divisor=divisor), what, rounds=1, seed=1
            )
        )[0]
        for divisor in ("reported", "all")
    }  # fmt: skip
    assert steps["reported"] == pytest.approx(-1.0)
    assert -0.9 < steps["all"] < 0


@pytest.mark.parametrize("per", ["round", "update"])
def test_rates_decay_per_round_or_per_update(per: str) -> None:
    who = cafe.Federation(6, cafe.Exponential(1.0))
    rate = LearningRate(2.0, 3.0)
    what = task(6, learner=Linear(), rate=rate, per=per, batch=None)
    history = cafe.simulate(who, mcu(quorum=4, deadline=0.8), what, rounds=40, seed=1)
    assert 0 < history.updates < 40
    good = np.flatnonzero(history.by_round["succeeded"])
    t = 1 + (good if per == "round" else np.arange(len(good)))
    # Each report's gradient is its client's scale; the mean over reporters differs by round.
    scale = what.scale
    run = cafe.engine.Run(who, mcu(quorum=4, deadline=0.8), what, seed=1)
    expected, seen = 0.0, 0
    before = run.ledger.merged.copy()
    while seen < len(good):
        if run.step().succeeded:
            used = np.flatnonzero(run.ledger.merged - before)
            expected -= float(rate(t[seen])) * float(scale[used].mean())
            before, seen = run.ledger.merged.copy(), seen + 1
    assert model(history)[0] == pytest.approx(expected, rel=1e-4)


def test_server_optimisers_follow_their_formulas() -> None:
    update = np.array([1.0, -2.0, 0.0], dtype=np.float32)
    step, moments = Momentum(rate=0.5, momentum=0.8).step(update, ())
    np.testing.assert_allclose(step, 0.5 * update)
    step, _ = Momentum(rate=0.5, momentum=0.8).step(update, moments)
    np.testing.assert_allclose(step, 0.5 * 1.8 * update)
    adam = Adam(rate=0.1, first=0.9, second=0.99, floor=0.01)
    mean, square, moments = np.zeros(3), np.full(3, 0.01**2), ()
    yogi_square, yogi_moments = np.full(3, 0.01**2), ()
    yogi = Adam(rate=0.1, first=0.9, second=0.99, floor=0.01, yogi=True)
    for _ in range(5):
        mean = 0.9 * mean + 0.1 * update
        square = 0.99 * square + 0.01 * update**2
        step, moments = adam.step(update, moments)
        np.testing.assert_allclose(step, 0.1 * mean / (np.sqrt(square) + 0.01), rtol=1e-5)
        yogi_square = yogi_square - 0.01 * update**2 * np.sign(yogi_square - update**2)
        step, yogi_moments = yogi.step(update, yogi_moments)
        np.testing.assert_allclose(step, 0.1 * mean / (np.sqrt(yogi_square) + 0.01), rtol=1e-5)


def test_training_improves_the_accuracy() -> None:
    who, what = cafe.Federation(10, cafe.Exponential(1.0)), task(10)
    history = cafe.simulate(who, mcu(quorum=1, deadline=0.5), what, rounds=150, evaluate_every=50)
    assert history.accuracy is not None
    assert history.accuracy > 0.6
    assert history.curve is not None
    np.testing.assert_array_equal(history.curve.round, [50, 100, 150])
    np.testing.assert_allclose(history.curve.time, [25.0, 50.0, 75.0])
    np.testing.assert_array_equal(history.curve.updates, np.cumsum(
        history.by_round["succeeded"])[[49, 99, 149]])  # fmt: skip
    assert np.all(np.diff(history.curve.work) > 0)
    assert history.curve.loss[-1] < np.log(2)


@pytest.mark.parametrize(
    "policy",
    [
        mcu(quorum=3, deadline=0.4, late="keep"),
        agu(quorum=4, deadline=0.4, pool="union"),
        awu(deadline=0.5, weight="unbiased", steps=2),
    ],
    ids=str,
)
def test_evaluation_frequency_does_not_change_the_model(policy: cafe.Policy) -> None:
    """How often the model is evaluated does not change a byte of the result."""
    who = cafe.Federation(9, cafe.Exponential(1.0), availability=0.9)
    what = task(9, server=Momentum(momentum=0.5))
    alone = cafe.simulate(who, policy, what, rounds=60, evaluate_every=60)
    watched = cafe.simulate(who, policy, what, rounds=60, evaluate_every=7)
    assert alone.updates > 10
    assert model(alone).tobytes() == model(watched).tobytes()


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (mcu(quorum=1, deadline=1.0), 1),
        (mcu(quorum=1, deadline=0.05, late="keep"), 3),
        (agu(quorum=9, deadline=0.2), 1),
    ],
    ids=str,
)
def test_only_the_models_that_jobs_refer_to_are_kept(policy: cafe.Policy, most: int) -> None:
    """Jobs of 0.12 and 0.17 run through several rounds of 0.05 and refer to old versions."""
    who = cafe.Federation(9, cafe.Constant(np.array([0.12, 0.17, 0.01])), kind=np.arange(9) % 3)
    run = Run(who, policy, task(9))
    assert run.training is not None
    kept = 0
    for _ in range(20):
        run.step()
        needed = {run.ledger.version, *run.running.version.tolist()}
        assert set(run.training.models) == needed
        kept = max(kept, len(needed))
    assert run.ledger.version == 20
    assert kept == most
