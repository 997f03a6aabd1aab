"""Evaluation by default: at most a tenth of the examples, each version once, the same resumed.

The last version is evaluated once more for the clients: on the examples of each of its two classes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Rows
from cafe.engine import Run, StoppingRule, run_rounds
from cafe.engine.evaluation_budget import choose_number, has_budget
from cafe.engine.snapshot import restore, save
from cafe.learn.base import Score
from cafe.learn.linear import Logistic
from cafe.policies import mcu


class CountingLearner(Logistic):
    """A costly learner that counts the examples it is trained on and evaluated on."""

    costly = True

    def __init__(self) -> None:
        super().__init__(2, 2, l2=0.01)
        self.trained, self.evaluated, self.models = 0, Counter[int](), Counter[bytes]()

    def gradient(self, model: Any, data: Examples, rows: Rows, weight: Any) -> Any:
        self.trained += int(np.count_nonzero(weight))
        return super().gradient(model, data, rows, weight)

    def score(self, model: Any, data: Examples) -> Score:
        self.evaluated[len(data)] += 1
        self.models[self.save(model).tobytes()] += 1
        return super().score(model, data)

    @property
    def examples_evaluated(self) -> int:
        return sum(number * times for number, times in self.evaluated.items())


def task_of(learner: Logistic, test: int, clients: int = 20) -> cafe.Task:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400 + test, 2))
    every = Examples(x, (x[:, 0] > 0).astype(int))
    shards = cafe.data.IID()(every.y[:400], clients, rng)
    train, asked = every.take(np.arange(400)), every.take(np.arange(400, 400 + test))
    return cafe.Task(train, shards, learner, test=asked, batch=10)


FLEET = cafe.Federation(20, cafe.Exponential(1.0))
POLICY = mcu(quorum=1, deadline=2.0)


@pytest.mark.parametrize(
    ("rounds", "test", "number"),
    [(100, 10_000, 1_000), (1500, 10_000, 2_000), (500, 300, 300), (100, 1_200, 1_000)],
)
def test_at_most_a_tenth_of_the_trained_examples(rounds: int, test: int, number: int) -> None:
    learner = CountingLearner()
    history = cafe.simulate(FLEET, POLICY, task_of(learner, test), rounds=rounds, seed=1)
    assert history.curve is not None
    assert learner.evaluated[number] == len(history.curve)
    assert learner.examples_evaluated <= learner.trained / 10
    by_client = history.accuracy_by_client is not None
    assert by_client == (number * (len(history.curve) + 1) <= learner.trained / 10)
    assert learner.examples_evaluated == number * (len(history.curve) + by_client)
    *others, last = learner.models.values()
    assert {*others} <= {1}
    assert last == (3 if by_client else 1)
    assert history.curve.round[-1] == rounds


def test_the_counted_examples_are_those_of_the_learner() -> None:
    learner = CountingLearner()
    run = Run(FLEET, POLICY, task_of(learner, 50), seed=1)
    for _ in range(5):
        run.step()
    assert run.training is not None
    assert run.training.examples_trained == learner.trained > 0


def test_local_steps_count_too() -> None:
    run = Run(FLEET, mcu(quorum=1, deadline=2.0, steps=3), task_of(CountingLearner(), 50), seed=1)
    run.step()
    used = run.history().reports_used
    assert run.training is not None
    assert run.training.examples_trained == 3 * 10 * used


def test_a_version_is_evaluated_once_although_rounds_fail() -> None:
    learner = CountingLearner()
    policy = mcu(quorum=20, deadline=2.0)  # about one round in twenty succeeds
    history = cafe.simulate(FLEET, policy, task_of(learner, 50), rounds=200, evaluate_every=1)
    assert history.updates < 100
    *others, last = learner.models.values()
    assert ({*others}, last) == ({1}, 3)


def test_a_resumed_run_is_evaluated_in_the_same_way() -> None:
    def new() -> Run:
        return Run(FLEET, POLICY, task_of(CountingLearner(), 10_000), seed=1)

    stopping = StoppingRule(300, None, None)
    whole, first, second = new(), new(), new()
    for _ in run_rounds(whole, stopping):
        pass
    for outcome, _ in run_rounds(first, stopping):
        if outcome.round == 170:
            break
    restore(second, save(first))
    for _ in run_rounds(second, stopping):
        pass
    assert second.scores == whole.scores
    assert len(whole.scores) > 3
    one, two = save(whole), save(second)
    assert all(
        np.array_equal(one[name], two[name], equal_nan=True) for name in one if name != "meta"
    )
    assert bytes(one["meta"]) == bytes(two["meta"])


def test_runs_in_which_nothing_is_trained() -> None:
    learner = CountingLearner()
    never = mcu(quorum=20, deadline=0.01)
    history = cafe.simulate(FLEET, never, task_of(learner, 5_000), rounds=20)
    assert history.updates == 0
    assert learner.evaluated == {1_000: 1}


def test_other_learners_and_other_options_are_not_limited() -> None:
    plain = Logistic(2, 2, l2=0.01)
    history = cafe.simulate(FLEET, POLICY, task_of(plain, 5_000), rounds=100)
    assert history.curve is not None
    assert len(history.curve) > 90
    assert not has_budget(Run(FLEET, POLICY, task_of(plain, 50)))
    learner = CountingLearner()
    cafe.simulate(FLEET, POLICY, task_of(learner, 5_000), rounds=20, evaluate_every=5)
    assert learner.evaluated[5_000] == 4
    assert learner.examples_evaluated == 5 * 5_000


def test_clusters_are_not_limited() -> None:
    learner = CountingLearner()
    clusters = [cafe.Cluster(cafe.Federation(10, cafe.Exponential(1.0)), POLICY)] * 2
    levels = cafe.two_levels(clusters, mcu(quorum=1, deadline=9.0), task_of(learner, 50), rounds=5)
    assert levels.cloud.curve is not None
    assert len(levels.cloud.curve) == 5


def test_the_evaluated_examples_do_not_depend_on_the_seed() -> None:
    runs = [Run(FLEET, POLICY, task_of(CountingLearner(), 3_000), seed=seed) for seed in (0, 1)]
    some = [run.training.evaluation_examples(1_000) for run in runs if run.training is not None]
    assert np.array_equal(some[0].x, some[1].x)
    assert len({*map(bytes, some[0].x)}) == 1_000


def test_numbers_of_examples() -> None:
    for trained in (1e3, 1e5, 3e6, 7e8, 1e12):
        assert 1_000 <= choose_number(trained, 10**9) <= max(1_000, trained / 100)
    assert [choose_number(trained, 10**6) for trained in (199_999, 200_000, 500_000)] == [
        1_000,
        2_000,
        5_000,
    ]
    assert choose_number(1e6, 7_000) == 7_000
    assert choose_number(0, 20) == 20
