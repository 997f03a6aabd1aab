"""The settings that are tried for each policy.

The spaces are those of ``cafe.tuning``, which ask for a policy's own numbers. Here the numbers are
random: deadlines between quantiles of the response times, numbers of clients as shares of all
clients. All policies have the same number of tries, and each try draws a learning rate too. A space
draws at most four numbers; what is not in it keeps the recipe's default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from settings import LINK, STEPS, Facts

from cafe.tuning import spaces as shipped

Rng = np.random.Generator
Given = dict[str, Any]
Space = Callable[[Facts, Rng], Given]

RATES = (0.05, 0.1, 0.2, 0.4)
# FLeet adds every report to the model as it is. The others average, or mix with a share.
RATE_FACTORS = {"fleet": 0.1}


def between(rng: Rng, low: float, high: float) -> float:
    """A number, uniform on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


class RandomNumbers:
    """A source of random numbers for the spaces of ``cafe.tuning``."""

    def __init__(self, facts: Facts, rng: Rng) -> None:
        self.facts, self.rng, self._wait = facts, rng, 0.0

    def deadline(self, name: str = "deadline") -> float:
        """A time by which 30 to 95 % of the reports have arrived."""
        self._wait = self.rng.uniform(0.3, 0.95)
        return self.facts.quantile(self._wait)

    def long_deadline(self) -> float:
        """A time by which 50 to 99 % of the reports have arrived."""
        return self.facts.quantile(self.rng.uniform(0.5, 0.99))

    def lost_after(self) -> float:
        """99 % of the reports have arrived."""
        return self.facts.quantile(0.99)

    def quorum(self, deadline: float) -> int:
        """At most half of the reports that are expected by the deadline."""
        return max(round(self.rng.uniform(0, 0.5) * self._wait * self.facts.clients), 1)

    def share(self, name: str, low: float = 0.1, high: float = 0.6, most: float = 1.0) -> int:
        """A share of the clients, uniform on a logarithmic scale; at least one client."""
        return max(round(self.facts.clients * between(self.rng, low, high)), 1)

    def fraction(self, name: str, low: float = 0.1, high: float = 0.6) -> float:
        """A share of the clients, as a fraction."""
        return self.share(name, low, high) / self.facts.clients

    def part(self, name: str, whole: int, low: float, high: float, *, log: bool = True) -> int:
        """A share of ``whole``, at least one."""
        return max(round(whole * self.between(name, low, high, log=log)), 1)

    def between(self, name: str, low: float, high: float, *, log: bool = True) -> float:
        """A number in a range."""
        return between(self.rng, low, high) if log else self.rng.uniform(low, high)

    def one_of(self, name: str, *values: Any) -> Any:
        """One of some values."""
        return values[self.rng.integers(len(values))]

    def work(self) -> Given:
        """The same number of steps for all policies."""
        return {"steps": STEPS}


def _shipped(name: str) -> Space:
    return lambda facts, rng: shipped.SPACES[name](RandomNumbers(facts, rng))


def _fedtune(facts: Facts, rng: Rng) -> Given:
    ask = RandomNumbers(facts, rng)
    cohort, epochs = ask.share("cohort", 0.1, 0.4), 1
    # Time matters: all preference for the time of training and of transmission.
    alpha = rng.uniform(0, 1)
    wanted = {"alpha": alpha, "beta": 1 - alpha, "gamma": 0.0, "delta": 0.0}
    return {"cohort": cohort, "epochs": epochs, "deadline": 4 * ask.lost_after()} | wanted


def _anarchic(facts: Facts, rng: Rng) -> Given:
    # On average clients take STEPS steps; their updates are divided by the number of steps.
    given = _shipped("anarchic")(facts, rng)
    given |= {"most_steps": 2 * STEPS - 1, "server_rate": float(STEPS)}
    return given | {"setting": RandomNumbers(facts, rng).one_of("setting", "device", "silo")}


def _hierarchical(facts: Facts, rng: Rng) -> Given:
    ask = RandomNumbers(facts, rng)
    clusters = ask.one_of("clusters", 2, 5, 10)
    goal = max(round(facts.clients / clusters * rng.uniform(0.1, 0.6)), 1)
    given = {"clusters": clusters, "goal": goal, "mixing": between(rng, 0.1, 0.9)}
    given |= {"edge_updates": ask.one_of("edge_updates", 1, 2, 4), "deadline": ask.lost_after()}
    return given | {"link": LINK * facts.quantile(0.5), "steps": STEPS}


def _cost_aware_hierarchical(facts: Facts, rng: Rng) -> Given:
    ask = RandomNumbers(facts, rng)
    given = {"edges": ask.one_of("edges", 2, 5, 10), "energy": between(rng, 0.1, 10.0)}
    given |= {"edge_updates": ask.one_of("edge_updates", 1, 2, 4)}
    given |= {"deadline": ask.long_deadline()}
    return given | {"link": LINK * facts.quantile(0.5), "steps": STEPS}


_OWN: dict[str, Space] = {
    "fedtune": _fedtune,
    "anarchic": _anarchic,
    "hierarchical": _hierarchical,
    "cost_aware_hierarchical": _cost_aware_hierarchical,
}

SPACES: dict[str, Space] = {
    name: _OWN.get(name) or _shipped(name)
    for name in (
        "mcu",
        "agu",
        "awu",
        "unbiased_age",
        "salvage",
        "deadline_compensated",
        "parameter_freezing",
        "fedavg",
        "fednova",
        "scaffold",
        "fedprox",
        "fedadam",
        "fedyogi",
        "li_sampling",
        "over_selection",
        "timely",
        "age_of_update",
        "energy_harvesting",
        "tifl",
        "flanp",
        "oort",
        "refl",
        "fedtune",
        "safa",
        "fedbuff",
        "fleet",
        "fedasync",
        "anarchic",
        "hierarchical",
        "cost_aware_hierarchical",
    )
}


def draw(policy: str, facts: Facts, number: int) -> tuple[dict[str, Any], float]:
    """The parameters and the learning rate of a try; the same number gives the same try."""
    rng = np.random.default_rng([number, *policy.encode()])
    rate = float(rng.choice(RATES)) * RATE_FACTORS.get(policy, 1.0)
    return SPACES[policy](facts, rng), rate
