"""The fleets of the study: which clients, when they are present, and how they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import cafe
from cafe.presence import DayNight, OnOff, Trace

CHANGE = 40  # the round after which the clients of some fleets change
FOREVER = 1e12


@dataclass(frozen=True, eq=False)
class Fleet:
    """A fleet, and what happens to it.

    Attributes:
        group: a word for the table.
        clients: the clients, with their presence.
        speeds: if given, response times are multiplied by these factors from round ``CHANGE`` on.
        late: how many clients, the last ones, appear only around round ``CHANGE``.
        crash: the probability that a client which has begun never reports.
        arguments: of the controller, and of the plan that it is compared with.
    """

    group: str
    clients: cafe.Federation
    speeds: Any = None
    late: int = 0
    crash: float = 0.0
    arguments: tuple[tuple[str, Any], ...] = ()

    def changed(self) -> cafe.Federation:
        """The clients after their change of speed."""
        who, factor = self.clients, self.speeds
        if factor is None:
            return who
        latency = who.latency
        if np.size(factor) > 1 and latency.kinds == 1:
            latency = latency.take(np.zeros(np.size(factor), dtype=np.intp))
        return cafe.Federation(who.clients, latency.scaled(factor), who.availability)


def spread(clients: int, deviation: float, seed: int) -> Any:
    """Factors of the clients' response times: log-normal with this deviation."""
    return np.exp(deviation * np.random.default_rng(seed).standard_normal(clients))


def newcomers(clients: int, late: int, start: float) -> Trace:
    """The last clients are present from some time on, the others always."""
    rows = [[k, 0.0 if k < clients - late else start, FOREVER] for k in range(clients)]
    return Trace(rows)


def fleets() -> dict[str, Fleet]:
    """All fleets by name."""
    one = cafe.Federation
    found: dict[str, Fleet] = {}

    def add(name: str, group: str, who: cafe.Federation, **more: Any) -> None:
        found[name] = Fleet(group, who, **more)

    add("exponential", "family", one(100, cafe.Exponential(1.0)))
    add("shifted exponential", "family", one(100, cafe.ShiftedExponential(shift=2.0, rate=1.0)))
    add("gamma", "family", one(100, cafe.Gamma(shape=3.0, scale=2.0)))
    add("Weibull, heavy tail", "family", one(100, cafe.Weibull(shape=0.6, scale=5.0)))
    add("Weibull, light tail", "family", one(100, cafe.Weibull(shape=2.5, scale=5.0)))
    add("log-normal", "family", one(100, cafe.LogNormal(mu=2.0, sigma=0.5)))
    add("log-normal, heavy tail", "family", one(100, cafe.LogNormal(mu=2.0, sigma=1.3)))
    add("uniform", "family", one(100, cafe.Uniform(low=1.0, high=4.0)))
    add("constant", "family", one(20, cafe.Constant(3.0)))
    busy = cafe.Mixture([cafe.Exponential(2.0), cafe.Exponential(0.1)], [0.7, 0.3])
    add("mixture, sometimes busy", "family", one(100, busy))
    times = np.random.default_rng(5).weibull(1.5, 40) * 3.0 + 0.5
    add("empirical", "family", one(100, cafe.Empirical(times)))
    add("phones, 100", "phones", cafe.phones(clients=100, seed=1))
    add("phones, 1000", "phones", cafe.phones(clients=1000, seed=2))
    slow = cafe.LogNormal(mu=np.log(5.0 * spread(100, 1.5, 1)), sigma=0.4)
    add("spread 1.5", "unequal", one(100, slow))
    rates = 1.0 / spread(200, 1.0, 2)
    add("unequal exponential", "unequal", cafe.Federation.exponential(rates))
    fast_slow = np.where(np.arange(100) < 20, 0.2, 10.0)
    add("20 % fast, 80 % slow", "unequal", one(100, cafe.Gamma(shape=4.0, scale=fast_slow / 4)))
    add("unequal constants", "unequal", one(50, cafe.Constant(spread(50, 0.7, 3))))
    add("10 clients", "size", one(10, cafe.Weibull(shape=1.5, scale=1.0)))
    add("10 unequal clients", "size", one(10, cafe.Gamma(shape=3.0, scale=spread(10, 1.0, 4))))
    add("1000 clients", "size", one(1000, cafe.Gamma(shape=2.0, scale=spread(1000, 0.6, 5))))
    add(
        "3000 clients",
        "size",
        one(3000, cafe.LogNormal(mu=np.log(spread(3000, 0.8, 6)), sigma=0.5)),
    )
    add("milliseconds", "unit", one(100, cafe.LogNormal(mu=np.log(0.02), sigma=0.6)))
    add("hours", "unit", one(100, cafe.LogNormal(mu=np.log(9000.0), sigma=0.6)))
    add("availability 0.2", "availability", one(100, cafe.Exponential(0.2), 0.2))
    answers = np.clip(np.random.default_rng(7).beta(2.0, 1.0, 60), 0.05, 1.0)
    unequal = cafe.LogNormal(mu=np.log(8.0 * spread(60, 0.5, 8)), sigma=0.7)
    add("unequal availability", "availability", one(60, unequal, answers))
    add("crashes 0.1", "availability", one(100, cafe.Gamma(shape=2.0, scale=1.0)), crash=0.1)
    day = DayNight(day=600.0, share=0.5, spread=0.5)
    add("day and night", "presence", one(100, cafe.Gamma(shape=2.0, scale=1.0), presence=day))
    coming = OnOff(on=60.0, off=60.0)
    add("on and off", "presence", one(100, cafe.Gamma(shape=2.0, scale=1.0), presence=coming))
    wide = cafe.LogNormal(mu=np.log(4.0 * spread(100, 0.5, 9)), sigma=0.5)
    add("3 times slower", "drift", one(100, wide), speeds=3.0)
    add("4 times faster", "drift", one(100, wide), speeds=0.25)
    some = np.where(np.arange(100) % 2 == 0, 3.0, 1.0)
    add("half of them 3 times slower", "drift", one(100, wide), speeds=some)
    add(
        "10 clients, 3 times slower", "drift", one(10, cafe.Gamma(shape=3.0, scale=1.0)), speeds=3.0
    )
    latency = cafe.Gamma(shape=2.0, scale=np.where(np.arange(100) < 70, 1.0, 3.0))
    # Its rounds last about 5 s, so that the newcomers appear around round 40.
    late = newcomers(100, 30, 180.0)
    add("30 % newcomers, slower", "newcomers", one(100, latency, presence=late), late=30)
    prices = (("waste_price", 0.1), ("broadcast_price", 1.0))
    add("prices", "goal", one(100, cafe.Exponential(1.0)), arguments=prices)
    add(
        "client-seconds",
        "goal",
        cafe.phones(clients=100, seed=3),
        arguments=(("goal", "client-seconds"),),
    )
    limits = (("at_most", "deadline=8"),)
    limited = one(100, cafe.LogNormal(mu=2.0, sigma=0.5))
    add("a deadline of at most 8 s", "goal", limited, arguments=limits)
    return found
