"""The federations of the study: who the clients are, what they hold, and what they learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import cafe
from cafe.data import IID, Classes, Dataset, Dirichlet, Examples, Shards, load
from cafe.learn.linear import Logistic
from cafe.learn.mlp import MLP
from cafe.planner import pooled_quantile
from cafe.presence import DayNight, OnOff

BATCH = 10
TEST = 1000  # examples on which the model is evaluated
SORTED = 0.7  # share of the examples that follow the speed, if classes are dealt by speed
FLEET_SEED = 1  # of speeds and availabilities: a fleet is the same in every run
RATES = {
    ("softmax", 1): (0.5, 1.2, 3.0, 7.5),
    ("perceptron", 1): (0.1, 0.25, 0.6, 1.5),
    ("perceptron", 5): (0.03, 0.1, 0.25, 0.6),
}  # the learning rates that are tried, by model and local steps


@dataclass(frozen=True)
class Fleet:
    """A federation and its task.

    Attributes:
        name: what the tables call it.
        build: makes the federation.
        data: "digits", or "mnist" at half its resolution.
        model: "softmax", or "perceptron" with 32 hidden units.
        split: "iid"; a number of classes that each client holds; "dirichlet"; or "by speed".
        overhead: seconds of a round besides waiting, in median response times.
        steps: local gradient steps of a report.
        cohort: clients that are invited in a round; None: all.
        share: the target, as a share of the highest accuracy at the end of the first runs.
    """

    name: str
    build: Callable[[], cafe.Federation]
    data: str = "digits"
    model: str = "softmax"
    split: str | int = "iid"
    overhead: float = 0.1
    steps: int = 1
    cohort: int | None = None
    share: float = 0.95

    @property
    def federation(self) -> cafe.Federation:
        """The clients."""
        return _federation(self)

    @property
    def median(self) -> float:
        """The median response time of all reports."""
        return pooled_quantile(self.federation.steady, 0.5)

    @property
    def seconds(self) -> float:
        """The overhead of a round in seconds."""
        return self.overhead * self.median

    @property
    def invited(self) -> int:
        """The number of clients that are invited in a round."""
        return self.cohort or self.federation.clients

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates that are tried, a middle one first."""
        low, middle, high, highest = RATES[self.model, self.steps]
        return high, middle, highest, low

    def task(self, seed: int, rate: float) -> cafe.Task:
        """What is learned; the seed draws which examples each client holds."""
        data = dataset(self.data)
        shards = _shards(self, seed)
        inputs = data.train.x.shape[1]
        learner: Any = Logistic(inputs, 10, l2=1e-4)
        if self.model == "perceptron":
            learner = MLP(inputs, 10, hidden=(32,), threads=1)
        return cafe.Task(data.train, shards, learner, test=data.test, batch=BATCH, rate=rate)


@cache
def _federation(fleet: Fleet) -> cafe.Federation:
    return fleet.build()


@cache
def dataset(name: str) -> Dataset:
    """The dataset with some of its test examples; MNIST is averaged over squares of 2 x 2."""
    found = load(name)
    some = np.sort(np.random.default_rng(0).permutation(len(found.test))[:TEST])
    test, train = found.test.take(some), found.train
    if name == "mnist":
        train, test = _halved(train), _halved(test)
    return replace(found, train=train, test=test)


def _halved(examples: Examples) -> Examples:
    squares = examples.x.reshape(-1, 14, 2, 14, 2)
    return Examples(squares.mean(axis=(2, 4), dtype=np.float32).reshape(-1, 196), examples.y)


@cache
def _shards(fleet: Fleet, seed: int) -> Shards:
    rng, labels = np.random.default_rng([seed, 7]), dataset(fleet.data).train.y
    clients = fleet.federation.clients
    if fleet.split == "by speed":
        return _by_speed(fleet.federation, labels, rng)
    if fleet.split == "dirichlet":
        return Dirichlet(alpha=0.3)(labels, clients, rng)
    if isinstance(fleet.split, int):
        return Classes(each=fleet.split)(labels, clients, rng)
    if clients > np.bincount(labels).min():  # too many for every class on every client
        return Shards.of(np.array_split(rng.permutation(len(labels)), clients))
    return IID()(labels, clients, rng)


def _by_speed(federation: cafe.Federation, labels: Any, rng: np.random.Generator) -> Shards:
    """Most examples are sorted by class and dealt to clients from fast to slow."""
    mixed = rng.permutation(len(labels))
    cut = round(SORTED * len(mixed))
    ordered = mixed[:cut][np.argsort(labels[mixed[:cut]], kind="stable")]
    fastest = np.argsort(federation.by_client(federation.latency.mean()), kind="stable")
    own = np.array_split(ordered, federation.clients)
    others = np.array_split(mixed[cut:], federation.clients)
    rows: list[Any] = [None] * federation.clients
    for place, client in enumerate(fastest.tolist()):
        rows[client] = np.concatenate([own[place], others[place]])
    return Shards.of(rows)


def _speeds(clients: int, spread: float) -> Any:
    """How slow each client is, with a median of 1 and this standard deviation of the logarithm."""
    rng = np.random.default_rng([FLEET_SEED, clients])
    return np.exp(spread * rng.standard_normal(clients))


def _equal(clients: int, latency: cafe.latency.Latency, share: float = 1.0) -> Any:
    return lambda: cafe.Federation(clients, latency, share)


def _lognormal(clients: int, spread: float, share: Any = 1.0, sigma: float = 0.4) -> Any:
    """Clients whose median response times are around 10 s and differ by ``spread``."""

    def build() -> cafe.Federation:
        mu = np.log(10 * _speeds(clients, spread))
        given = share
        if isinstance(share, tuple):
            rng = np.random.default_rng([FLEET_SEED, clients, 2])
            given = rng.uniform(*share, clients)
        return cafe.Federation(clients, cafe.LogNormal(mu, sigma), given)

    return build


def _gamma(clients: int, spread: float, share: float = 1.0) -> Any:
    def build() -> cafe.Federation:
        latency = cafe.Gamma(4.0, 10 / 3.672).scaled(_speeds(clients, spread))
        return cafe.Federation(clients, latency, share)

    return build


def _slow_part(clients: int, slow: int, factor: float) -> Any:
    """Clients with exponential times, some of them slower by a factor."""

    def build() -> cafe.Federation:
        rates = np.where(np.arange(clients) < slow, 0.1 / factor, 0.1)
        return cafe.Federation.exponential(rates)

    return build


def _phones(clients: int, share: float = 1.0) -> Any:
    def build() -> cafe.Federation:
        return cafe.phones(clients, seed=FLEET_SEED, examples=100, availability=share)

    return build


def _with(build: Any, presence: Callable[[float], Any]) -> Any:
    """The federation with a presence that is made from its median response time."""

    def built() -> cafe.Federation:
        federation = build()
        return replace(federation, presence=presence(pooled_quantile(federation, 0.5)))

    return built


def _nightly(median: float) -> DayNight:
    return DayNight(day=40 * median, share=0.6, spread=0.5)


def _on_off(median: float) -> OnOff:
    return OnOff(on=20 * median, off=20 * median)


_EXPONENTIAL = cafe.Exponential(mean=10.0)
_SHIFTED = cafe.ShiftedExponential(shift=3.0, rate=1 / 7)

FLEETS = (
    Fleet("50 exponential", _equal(50, _EXPONENTIAL), overhead=0.5),
    Fleet("40 exponential, 2 classes", _equal(40, _EXPONENTIAL), split=2),
    Fleet("100 exponential, 3 classes, no overhead", _equal(100, _EXPONENTIAL), split=3,
          overhead=0),
    Fleet("20 shifted exponential", _equal(20, _SHIFTED), overhead=0),
    Fleet("60 shifted exponential, perceptron", _equal(60, _SHIFTED),
          model="perceptron", split="dirichlet", overhead=0.5),
    Fleet("50 log-normal, narrow", _lognormal(50, 0.1)),
    Fleet("40 log-normal, spread 0.5, 2 classes", _lognormal(40, 0.5), split=2),
    Fleet("50 log-normal, spread 1", _lognormal(50, 1.0)),
    Fleet("40 log-normal, spread 1, 2 classes, perceptron", _lognormal(40, 1.0),
          model="perceptron", split=2),
    Fleet("50 log-normal, spread 0.5, classes by speed", _lognormal(50, 0.5), split="by speed"),
    Fleet("50 log-normal, spread 1, classes by speed", _lognormal(50, 1.0), split="by speed"),
    Fleet("30 gamma, 5 steps, perceptron", _gamma(30, 0.5), model="perceptron", steps=5,
          overhead=0.5),
    Fleet("40 Weibull, heavy tail, 2 classes",
          _equal(40, cafe.Weibull(0.6, 8.0)), split=2),
    Fleet("20 of 100 ten times slower", _slow_part(100, 20, 10.0), split=3),
    Fleet("20 of 50 ten times slower, classes by speed", _slow_part(50, 20, 10.0),
          split="by speed"),
    Fleet("40 uniform, large overhead, 2 classes", _equal(40, cafe.Uniform(5.0, 15.0)), split=2,
          overhead=2),
    Fleet("50 log-normal, availability 0.3", _lognormal(50, 0.5, 0.3)),
    Fleet("100 log-normal, availability 0.1 to 1, 3 classes",
          _lognormal(100, 0.5, (0.1, 1.0)), split=3),
    Fleet("60 log-normal, day and night, dirichlet", _with(_lognormal(60, 0.5), _nightly),
          split="dirichlet"),
    Fleet("60 exponential, on and off, perceptron",
          _with(_equal(60, _EXPONENTIAL), _on_off), model="perceptron", overhead=0.5),
    Fleet("50 phones", _phones(50)),
    Fleet("100 phones, 3 classes, perceptron", _phones(100), model="perceptron", split=3),
    Fleet("50 phones, classes by speed", _phones(50), split="by speed"),
    Fleet("40 phones, day and night, 2 classes, 5 steps", _with(_phones(40), _nightly),
          model="perceptron", split=2, steps=5, overhead=0.5),
    Fleet("MNIST, 100 exponential", _equal(100, _EXPONENTIAL), data="mnist"),
    Fleet("MNIST, 100 gamma, availability 0.5, 3 classes, perceptron", _gamma(100, 0.5, 0.5),
          data="mnist", model="perceptron", split=3),
    Fleet("MNIST, 1000 log-normal, spread 1, cohorts of 50", _lognormal(1000, 1.0), data="mnist",
          split="dirichlet", cohort=50),
    Fleet("MNIST, 10,000 phones, cohorts of 100", _phones(10_000), data="mnist", cohort=100),
    Fleet("40 exponential, 2 classes, 99 %", _equal(40, _EXPONENTIAL), split=2, share=0.99),
    Fleet("50 phones, classes by speed, 99 %", _phones(50), split="by speed", share=0.99),
)  # fmt: skip

# A federation for tests: small and quick.
QUICK = (Fleet("12 gamma", _gamma(12, 0.3), overhead=0.5),)


def named(name: str) -> Fleet:
    """The federation with this name."""
    return next(fleet for fleet in (*FLEETS, *QUICK) if fleet.name == name)
