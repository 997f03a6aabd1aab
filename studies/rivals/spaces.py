"""The settings that are tried for each policy.

A space draws the policy's own numbers at random. Deadlines are drawn between quantiles of the
response times, numbers of clients as shares of all clients. All policies have the same number of
tries, and each try draws a learning rate too. A space draws at most four numbers; what is not in it
keeps the recipe's default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from settings import LINK, STEPS, Facts

Rng = np.random.Generator
Given = dict[str, Any]
Space = Callable[[Facts, Rng], Given]

RATES = (0.05, 0.1, 0.2, 0.4)
# FLeet adds every report to the model as it is. The others average, or mix with a share.
RATE_FACTORS = {"fleet": 0.1}


def deadline(facts: Facts, rng: Rng) -> float:
    """A time by which 30 to 95 % of the reports have arrived."""
    return facts.quantile(rng.uniform(0.3, 0.95))


def long_deadline(facts: Facts, rng: Rng) -> float:
    """A time by which 50 to 99 % of the reports have arrived, for rounds that may close earlier."""
    return facts.quantile(rng.uniform(0.5, 0.99))


def lost_after(facts: Facts) -> float:
    """When a scheme without deadlines gives a client up: 99 % of the reports have arrived."""
    return facts.quantile(0.99)


def share(facts: Facts, rng: Rng, low: float = 0.1, high: float = 0.6) -> int:
    """A share of the clients, uniform on a logarithmic scale; at least one client."""
    return max(round(facts.clients * between(rng, low, high)), 1)


def between(rng: Rng, low: float, high: float) -> float:
    """A number, uniform on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def one_of(rng: Rng, *values: Any) -> Any:
    """One of some values."""
    return values[rng.integers(len(values))]


def _mcu(facts: Facts, rng: Rng) -> Given:
    wait = rng.uniform(0.3, 0.95)
    # The quorum is at most half of the reports that are expected by the deadline.
    quorum = max(round(rng.uniform(0, 0.5) * wait * facts.clients), 1)
    return {"quorum": quorum, "deadline": facts.quantile(wait), "steps": STEPS}


def _awu(facts: Facts, rng: Rng) -> Given:
    weight = one_of(rng, "paper", "age", "linear", "unbiased")
    return {"deadline": deadline(facts, rng), "weight": weight, "steps": STEPS}


def _only_deadline(facts: Facts, rng: Rng) -> Given:
    return {"deadline": deadline(facts, rng), "steps": STEPS}


def _fedavg(facts: Facts, rng: Rng) -> Given:
    fraction = share(facts, rng) / facts.clients
    return {"fraction": fraction, "deadline": long_deadline(facts, rng), "steps": STEPS}


def _fedprox(facts: Facts, rng: Rng) -> Given:
    return _fedavg(facts, rng) | {"prox": between(rng, 0.001, 1.0)}


def _server_optimiser(facts: Facts, rng: Rng) -> Given:
    return _fedavg(facts, rng) | {"server_rate": between(rng, 0.003, 0.1)}


def _li_sampling(facts: Facts, rng: Rng) -> Given:
    scheme = one_of(rng, "I", "II")
    given = {"scheme": scheme, "cohort": share(facts, rng), "steps": STEPS}
    return given | {"deadline": long_deadline(facts, rng)}


def _over_selection(facts: Facts, rng: Rng) -> Given:
    goal = share(facts, rng, high=0.7)
    return {"goal": goal, "deadline": long_deadline(facts, rng), "steps": STEPS}


def _timely(facts: Facts, rng: Rng) -> Given:
    cohort = share(facts, rng, 0.1, 0.5)  # at night fewer clients are present
    goal = max(round(cohort * rng.uniform(0.3, 1.0)), 1)
    return {"cohort": cohort, "goal": goal, "deadline": lost_after(facts), "steps": STEPS}


def _cohort(facts: Facts, rng: Rng) -> Given:
    cohort = share(facts, rng)
    return {"cohort": cohort, "deadline": long_deadline(facts, rng), "steps": STEPS}


def _age_of_update(facts: Facts, rng: Rng) -> Given:
    given = _cohort(facts, rng)
    return {"channels": given.pop("cohort")} | given


def _tifl(facts: Facts, rng: Rng) -> Given:
    tiers = one_of(rng, 3, 5)
    cohort = share(facts, rng, 0.1, 1 / tiers)  # at most a whole tier
    given = {"tiers": tiers, "cohort": cohort, "interval": one_of(rng, 5, 20)}
    return given | {"deadline": lost_after(facts), "steps": STEPS}


def _flanp(facts: Facts, rng: Rng) -> Given:
    given = {"threshold": between(rng, 1e-4, 1e-1), "first": share(facts, rng, 0.04, 0.3)}
    return given | {"deadline": lost_after(facts), "steps": STEPS}


def _oort(facts: Facts, rng: Rng) -> Given:
    given = {"goal": share(facts, rng, high=0.5), "preferred": deadline(facts, rng)}
    return given | {"deadline": lost_after(facts), "steps": STEPS}


def _refl(facts: Facts, rng: Rng) -> Given:
    given = {"goal": share(facts, rng, high=0.5), "hold_off": one_of(rng, 0, 1, 5)}
    return given | {"deadline": long_deadline(facts, rng), "steps": STEPS}


def _fedtune(facts: Facts, rng: Rng) -> Given:
    cohort, epochs = share(facts, rng, 0.1, 0.4), 1
    # Time matters: all preference for the time of training and of transmission.
    alpha = rng.uniform(0, 1)
    wanted = {"alpha": alpha, "beta": 1 - alpha, "gamma": 0.0, "delta": 0.0}
    return {"cohort": cohort, "epochs": epochs, "deadline": 4 * lost_after(facts)} | wanted


def _safa(facts: Facts, rng: Rng) -> Given:
    given = {"fraction": rng.uniform(0.1, 0.9), "tolerance": one_of(rng, 2, 5, 10)}
    return given | {"deadline": deadline(facts, rng), "steps": STEPS}


def _buffered(facts: Facts, rng: Rng) -> Given:
    concurrency = share(facts, rng, 0.2, 1.0)
    goal = max(round(concurrency * between(rng, 0.05, 0.6)), 1)
    return {"concurrency": concurrency, "goal": goal, "deadline": lost_after(facts)}


def _fedbuff(facts: Facts, rng: Rng) -> Given:
    return _buffered(facts, rng) | {"steps": STEPS}


def _fleet(facts: Facts, rng: Rng) -> Given:
    given = {"concurrency": share(facts, rng, 0.2, 1.0), "goal": one_of(rng, 1, 2, 4)}
    return given | {"deadline": lost_after(facts), "steps": STEPS}


def _fedasync(facts: Facts, rng: Rng) -> Given:
    concurrency = share(facts, rng, 0.2, 1.0)
    given = {"concurrency": concurrency, "mixing": between(rng, 0.05, 0.9)}
    how = one_of(rng, "constant", "polynomial", "hinge")
    return given | {"staleness": how, "deadline": lost_after(facts), "steps": STEPS}


def _anarchic(facts: Facts, rng: Rng) -> Given:
    # On average clients take STEPS steps; their updates are divided by the number of steps.
    given = _buffered(facts, rng) | {"most_steps": 2 * STEPS - 1, "server_rate": float(STEPS)}
    return given | {"setting": one_of(rng, "device", "silo")}


def _parameter_freezing(facts: Facts, rng: Rng) -> Given:
    return _only_deadline(facts, rng) | {"threshold": between(rng, 0.02, 0.3)}


def _hierarchical(facts: Facts, rng: Rng) -> Given:
    clusters = one_of(rng, 2, 5, 10)
    goal = max(round(facts.clients / clusters * rng.uniform(0.1, 0.6)), 1)
    given = {"clusters": clusters, "goal": goal, "mixing": between(rng, 0.1, 0.9)}
    given |= {"edge_updates": one_of(rng, 1, 2, 4), "deadline": lost_after(facts)}
    return given | {"link": LINK * facts.quantile(0.5), "steps": STEPS}


def _cost_aware_hierarchical(facts: Facts, rng: Rng) -> Given:
    given = {"edges": one_of(rng, 2, 5, 10), "energy": between(rng, 0.1, 10.0)}
    given |= {"edge_updates": one_of(rng, 1, 2, 4), "deadline": long_deadline(facts, rng)}
    return given | {"link": LINK * facts.quantile(0.5), "steps": STEPS}


SPACES: dict[str, Space] = {
    "mcu": _mcu,
    "agu": _mcu,
    "awu": _awu,
    "unbiased_age": _only_deadline,
    "salvage": _only_deadline,
    "deadline_compensated": _only_deadline,
    "parameter_freezing": _parameter_freezing,
    "fedavg": _fedavg,
    "fednova": _fedavg,
    "scaffold": _fedavg,
    "fedprox": _fedprox,
    "fedadam": _server_optimiser,
    "fedyogi": _server_optimiser,
    "li_sampling": _li_sampling,
    "over_selection": _over_selection,
    "timely": _timely,
    "age_of_update": _age_of_update,
    "energy_harvesting": _cohort,
    "tifl": _tifl,
    "flanp": _flanp,
    "oort": _oort,
    "refl": _refl,
    "fedtune": _fedtune,
    "safa": _safa,
    "fedbuff": _fedbuff,
    "fleet": _fleet,
    "fedasync": _fedasync,
    "anarchic": _anarchic,
    "hierarchical": _hierarchical,
    "cost_aware_hierarchical": _cost_aware_hierarchical,
}


def draw(policy: str, facts: Facts, number: int) -> tuple[dict[str, Any], float]:
    """The parameters and the learning rate of a try; the same number gives the same try."""
    rng = np.random.default_rng([number, *policy.encode()])
    rate = float(rng.choice(RATES)) * RATE_FACTORS.get(policy, 1.0)
    return SPACES[policy](facts, rng), rate
