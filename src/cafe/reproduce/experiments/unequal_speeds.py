"""Runs where half of the clients are slow: on MNIST, and on a task with known limits.

Fast clients hold the classes 0 to 4 and slow ones 5 to 9, so that a scheme that favours one side
shows in what the model knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

import cafe
from cafe.data import Dataset, Examples, Shards, Single, load
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.latency.base import Floats
from cafe.learn.mlp import MLP
from cafe.learn.quadratic import Quadratic
from cafe.learn.schedules import LearningRate
from cafe.policies import awu, mcu
from cafe.randomness import Stream
from cafe.reproduce.rows import Row
from cafe.rounds import History, Policy
from cafe.task import Task

MNIST, TOY = "mnist", "toy"  # the parts of the rows
CLIENTS, DEADLINE = 100, 0.5
FAST, SLOW, EQUAL = 5.0, 0.3, 1.0  # rates: 92 %, 14 % and 39 % of them report by the deadline
HELD, BATCH, RATE = 100, 10, 0.1
SIZE = 10  # dimensions of the task with known limits
LEARNERS: dict[str, tuple[int, ...]] = {"softmax": (), "network": (128, 64, 32)}
ALIKE = "mcu, equal speeds"
SCHEMES: dict[str, Callable[[], Policy]] = {
    ALIKE: lambda: mcu(quorum=1, deadline=DEADLINE),
    "mcu": lambda: mcu(quorum=1, deadline=DEADLINE),
    "awu, paper's Q": lambda: awu(deadline=DEADLINE),
    "awu, linear": lambda: awu(deadline=DEADLINE, weight="linear"),
    "awu, unbiased": lambda: awu(deadline=DEADLINE, weight="unbiased"),
}


def slow() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which clients are slow: client k holds class k mod 10, and slow ones hold 5 to 9."""
    return np.asarray(np.arange(CLIENTS) % 10 >= 5)


def federation(scheme: str) -> Federation:
    """Half of the clients fast and half slow; all equally fast for the comparison."""
    if scheme == ALIKE:
        return Federation(CLIENTS, Exponential(EQUAL))
    return Federation(CLIENTS, Exponential(np.array([FAST, SLOW])), kind=slow().astype(np.intp))


@lru_cache(maxsize=1)
def load_images() -> Dataset:
    """MNIST, as the paper splits it."""
    return load("mnist").paper_split()


def run_mnist(learner: str, scheme: str, seed: int, rounds: int) -> list[Row]:
    """Train on MNIST and measure the recall on the classes of fast and of slow clients."""
    data = load_images()
    shards = Single(HELD, HELD)(data.train.y, CLIENTS, Stream(seed, "partition").at(0))
    model = MLP(data.train.x.shape[1], 10, hidden=LEARNERS[learner], threads=1)
    history = _run(scheme, Task(data.train, shards, model, data.test, batch=BATCH, rate=RATE), seed,
                   rounds)  # fmt: skip
    sides = {"fast": data.test.y < 5, "slow": data.test.y >= 5}
    recall = {
        f"{side}_recall": _accuracy(model, history, data.test.take(np.flatnonzero(rows)))
        for side, rows in sides.items()
    }
    return [
        {"part": MNIST, "learner": learner, "policy": scheme, "seed": seed, "rounds": rounds,
         "accuracy": history.accuracy, **recall, "slow_share": _slow_share(history)}
    ]  # fmt: skip


def run_toy(scheme: str, seed: int, rounds: int) -> list[Row]:
    """Train a quadratic per client; the limit is the mean of the centres, by their weights.

    All quadratics have the same curvature. The rate is Theorem 3's, with L = mu = 1.
    """
    data = Examples(_centres(), np.zeros(CLIENTS))
    shards = Shards.of(list(np.arange(CLIENTS)[:, None]))
    task = Task(data, shards, Quadratic(SIZE), batch=None, rate=LearningRate(2.0, 3.0))
    history = _run(scheme, task, seed, rounds)
    assert history.model is not None
    weight = history.weight_by_client / history.weight_by_client.sum()
    return [
        {"part": TOY, "policy": scheme, "seed": seed, "rounds": rounds,
         "gap": _gap(history.model.astype(float)), "limit": _gap(weight @ _centres()),
         "slow_share": _slow_share(history)}
    ]  # fmt: skip


def _run(scheme: str, task: Task, seed: int, rounds: int) -> History:
    policy = SCHEMES[scheme]()
    return simulate(
        federation(scheme), policy, task, rounds=rounds, seed=seed, evaluate_every=rounds
    )


def _slow_share(history: History) -> float:
    """The slow clients' part of all weight."""
    weight = history.weight_by_client
    return float(weight[slow()].sum() / weight.sum())


def _accuracy(learner: MLP, history: History, examples: Examples) -> float:
    assert history.model is not None
    return float(learner.score(learner.load(history.model), examples).accuracy or 0.0)


@lru_cache(maxsize=1)
def _centres() -> Floats:
    """The clients' centres: the fast clients' around +1, the slow clients' around -1.

    Rounded to float32, as in the learner, so that limits are those of the same points.
    """
    side = np.where(slow(), -1.0, 1.0)[:, None]
    places = np.random.default_rng(0).normal(side, 1.0, size=(CLIENTS, SIZE))
    return places.astype(np.float32).astype(float)


def _gap(model: Floats) -> float:
    """F(w) - F*: half the squared distance to the mean of all centres."""
    return float(np.sum((model - _centres().mean(axis=0)) ** 2)) / 2


def expected_gap() -> float:
    """MCU's limit by theory: at the mean of the centres, weighted by the shares S_k."""
    e = cafe.expect(federation("mcu"), quorum=1, deadline=DEADLINE)
    return _gap(e.share_by_client / e.success_probability @ _centres())
