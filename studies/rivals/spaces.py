"""The settings that are tried for each policy.

A space draws the policy's own numbers at random. Deadlines are drawn between quantiles of the
response times, numbers of clients as shares of all clients. All policies have the same number of
tries, and each try draws a learning rate too. Every space is at most four numbers; what is not in
it keeps the recipe's default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from settings import STEPS, Facts

Rng = np.random.Generator
Space = Callable[[Facts, Rng], dict[str, Any]]

RATES = (0.05, 0.1, 0.2, 0.4)


def deadline(facts: Facts, rng: Rng) -> float:
    """A time by which 30 to 95 % of the reports have arrived."""
    return facts.quantile(rng.uniform(0.3, 0.95))


def share(facts: Facts, rng: Rng, low: float = 0.1, high: float = 0.6) -> int:
    """A share of the clients, uniform on a logarithmic scale; at least one client."""
    return max(round(facts.clients * float(np.exp(rng.uniform(np.log(low), np.log(high))))), 1)


def _mcu(facts: Facts, rng: Rng) -> dict[str, Any]:
    wait = rng.uniform(0.3, 0.95)
    # The quorum is at most half of the reports that are expected by the deadline.
    quorum = max(round(rng.uniform(0, 0.5) * wait * facts.clients), 1)
    return {"quorum": quorum, "deadline": facts.quantile(wait), "steps": STEPS}


def _awu(facts: Facts, rng: Rng) -> dict[str, Any]:
    weight = str(rng.choice(["paper", "age", "linear", "unbiased"]))
    return {"deadline": deadline(facts, rng), "weight": weight, "steps": STEPS}


def _fedavg(facts: Facts, rng: Rng) -> dict[str, Any]:
    return {
        "fraction": share(facts, rng) / facts.clients,
        "deadline": facts.quantile(rng.uniform(0.5, 0.99)),
        "steps": STEPS,
    }


SPACES: dict[str, Space] = {
    "mcu": _mcu,
    "agu": _mcu,
    "awu": _awu,
    "fedavg": _fedavg,
}


def draw(policy: str, facts: Facts, number: int) -> tuple[dict[str, Any], float]:
    """The parameters and the learning rate of a try; the same number gives the same try."""
    rng = np.random.default_rng([number, *policy.encode()])
    rate = float(rng.choice(RATES))
    return SPACES[policy](facts, rng), rate
