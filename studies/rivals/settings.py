"""What is compared on: four fleets, two tasks, and how long and how often runs are repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import cafe
from cafe.data import Classes, Dataset, Shards, load
from cafe.learn.mlp import MLP
from cafe.planner import pooled_quantile
from cafe.presence import DayNight

STEPS = 5  # local steps of every report, unless the scheme chooses their number
BATCH = 20
TEST = 2000  # examples on which the model is evaluated
CLASSES_EACH = 3  # classes that a client holds
SORTED = 0.7  # share of the examples that follow the speed, in the fleet "by speed"
HORIZON = 40  # length of a run, in median response times
LINK = 0.1  # time between an edge server and the cloud and back, in median response times
DAY = 16  # length of a day in the fleet "day and night", in median response times


@dataclass(frozen=True)
class Size:
    """How large a study is.

    Attributes:
        clients: clients of each fleet.
        dataset: name of the dataset.
        configurations: settings tried for each policy, fleet and task.
        tuned_again: how many of the best settings of the perceptron are tried with the network.
        seeds: seeds of the final runs.
        targets: for each task, the accuracy whose cost is measured.
        horizon: length of a run in median response times.
    """

    clients: int
    dataset: str
    configurations: int
    tuned_again: int
    seeds: int
    targets: dict[str, float]
    horizon: float = HORIZON


FULL = Size(50, "mnist", 16, 4, 5, {"perceptron": 0.85, "cnn": 0.85})
QUICK = Size(12, "digits", 2, 1, 2, {"perceptron": 0.5}, horizon=4)


@dataclass(frozen=True)
class Facts:
    """What the search space of a policy may depend on.

    Attributes:
        clients: number of clients.
        quantile: the time by which a share of all reports has arrived, if all clients take
            ``STEPS`` steps.
    """

    clients: int
    quantile: Callable[[float], float]


def _exponential(clients: int) -> cafe.Federation:
    """Equal clients: 2 s of training, and an exponential time with a mean of 8 s."""
    return cafe.Federation(clients, cafe.Exponential(1 / 8), per_step=0.4)


def _phones(clients: int) -> cafe.Federation:
    """Measured phones on measured Wi-Fi, with a model of 2 MB."""
    return cafe.phones(clients, seed=1, batch=BATCH, model_kbytes=2000.0)


def _day_and_night(clients: int) -> cafe.Federation:
    """The phones, each present for 60 % of every day, with starts spread over half a day."""
    federation = _phones(clients)
    day = DAY * _median(federation)
    return replace(federation, presence=DayNight(day=day, share=0.6, spread=0.5))


FLEETS: dict[str, Callable[[int], cafe.Federation]] = {
    "exponential": _exponential,
    "phones": _phones,
    "by speed": _phones,
    "day and night": _day_and_night,
}


@cache
def fleet(name: str, clients: int) -> cafe.Federation:
    """The federation of a fleet."""
    return FLEETS[name](clients)


def facts(name: str, clients: int) -> Facts:
    """What search spaces may know about a fleet."""
    whole = _with_steps(fleet(name, clients))
    return Facts(clients, lambda share: pooled_quantile(whole, share))


def horizon(name: str, size: Size) -> float:
    """The virtual time at which runs on a fleet end."""
    return size.horizon * _median(fleet(name, size.clients))


def _median(federation: cafe.Federation) -> float:
    return pooled_quantile(_with_steps(federation), 0.5)


def _with_steps(federation: cafe.Federation) -> cafe.Federation:
    """The federation whose response times include the training of ``STEPS`` steps."""
    return federation.at_steps(STEPS)


def shards(name: str, federation: cafe.Federation, data: Dataset, seed: int) -> Shards:
    """Which examples each client holds: three classes, or classes by speed."""
    rng, labels = np.random.default_rng([seed, 7]), data.train.y
    if name != "by speed":
        return Classes(each=CLASSES_EACH)(labels, federation.clients, rng)
    # Most examples are sorted by class and dealt to clients from fast to slow; the rest at random.
    mixed = rng.permutation(len(labels))
    cut = round(SORTED * len(mixed))
    ordered = mixed[:cut][np.argsort(labels[mixed[:cut]], kind="stable")]
    mean = federation.by_client(_with_steps(federation).latency.mean())
    by_speed = np.argsort(mean, kind="stable")
    parts = zip(
        np.array_split(ordered, federation.clients),
        np.array_split(mixed[cut:], federation.clients),
        strict=True,
    )
    rows: list[Any] = [None] * federation.clients
    for client, (own, others) in zip(by_speed.tolist(), parts, strict=True):
        rows[client] = np.concatenate([own, others])
    return Shards.of(rows)


@cache
def dataset(name: str) -> Dataset:
    """The dataset, loaded once per process, with a part of its test examples."""
    found = load(name)
    some = np.random.default_rng(0).permutation(len(found.test))[:TEST]
    return replace(found, test=found.test.take(np.sort(some)))


def task(kind: str, name: str, size: Size, seed: int, rate: float) -> cafe.Task:
    """What is learned: by a perceptron with 64 hidden units, or by a small CNN."""
    data = dataset(size.dataset)
    held = shards(name, fleet(name, size.clients), data, seed)
    learner = _perceptron(data) if kind == "perceptron" else _network(data)
    return cafe.Task(data.train, held, learner, test=data.test, batch=BATCH, rate=rate)


def _perceptron(data: Dataset) -> Any:
    return MLP(data.train.x.shape[1], 10, hidden=(64,), threads=1)


def _network(data: Dataset) -> Any:
    from torch import nn

    from cafe.learn.torch import TorchLearner

    def make() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=5, stride=2),
            nn.ReLU(),
            nn.Conv2d(8, 16, kernel_size=5, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 4 * 4, 10),
        )

    return TorchLearner(make, nn.CrossEntropyLoss(reduction="none"), shape=(1, *data.shape))
