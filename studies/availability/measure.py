"""Fit logs of fleets with offline clients, plan, and compare with the best plan for the true fleet.

Run it from the repository's root, with the package installed; it takes a few CPU minutes:

    python studies/availability/measure.py studies/availability/results.jsonl

Each line of the output is a fleet: its family, the share of answers that came after the deadline
(censoring), the availability, what was fitted, and what the plan costs. Fleets that are in the file
already are skipped, so an interrupted run can be continued.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cafe
from cafe.planner import Plan, Prices, pooled_quantile

CLIENTS, ROUNDS, SPREAD = 60, 100, 0.5
GOAL = Prices(waste=1.0, broadcast=50.0)
# One client's response times; the median of a typical client is 8 s.
POOLS: dict[str, cafe.latency.Latency] = {
    "exponential": cafe.Exponential(np.log(2) / 8),
    "weibull": cafe.Weibull(2.0, 8 / np.log(2) ** 0.5),
    "lognormal": cafe.LogNormal(np.log(8), 0.35),
    "gamma": cafe.Gamma(4.0, 8 / 3.672),
}
CENSORING = (0.1, 0.3, 0.5, 0.8)
AVAILABILITY = (0.5, 0.7, 0.9, 1.0)
FIGURES = ("waste", "broadcasts", "age", "worst_age", "success_probability")


def make_fleet(family: str, availability: float, seed: int, uneven: float = 0.0) -> cafe.Federation:
    """A fleet whose clients differ in speed and, if ``uneven`` is above 0, in availability."""
    rng = np.random.default_rng([seed, 1])
    scale = np.exp(SPREAD * rng.standard_normal(CLIENTS))
    share = np.full(CLIENTS, availability)
    if availability < 1 and uneven:
        odds = availability / (1 - availability) * np.exp(uneven * rng.standard_normal(CLIENTS))
        share = odds / (1 + odds)
    return cafe.Federation(CLIENTS, POOLS[family].scaled(scale), share)


def make_log(
    fleet: cafe.Federation, deadline: float, seed: int, rounds: int = ROUNDS
) -> cafe.Observations:
    """What a server would log in some rounds with this deadline."""
    times = fleet.sample(np.random.default_rng([seed, 2]), rounds)
    client = np.tile(np.arange(fleet.clients), rounds)
    return cafe.Observations(np.where(times <= deadline, times, np.nan).ravel(), deadline, client)


def deadline_for(fleet: cafe.Federation, censoring: float) -> float:
    """The deadline after which this share of all answers comes."""
    always = cafe.Federation(fleet.clients, fleet.latency)
    return pooled_quantile(always, 1 - censoring)


def loss(plan: Plan, truth: cafe.Federation, best: Plan) -> float:
    """How much more the plan costs on the true fleet than the best plan, as a share."""
    expected = cafe.expect(truth, quorum=plan.quorum, deadline=plan.deadline)
    return GOAL.cost(expected) / best.cost - 1


def measure(
    family: str, censoring: float, availability: float, seed: int, uneven: float = 0.0
) -> dict[str, Any]:
    """Fit, plan, and compare with the truth."""
    truth = make_fleet(family, availability, seed, uneven)
    deadline = deadline_for(truth, censoring)
    each = cafe.fit(make_log(truth, deadline, seed), families=list(POOLS)).by_client()
    fitted = each.federation()
    best, found = cafe.plan(truth, goal=GOAL), cafe.plan(fitted, goal=GOAL, trust="fitted")
    inside = chosen = found
    if found.extrapolates:
        inside = cafe.plan(fitted, goal=GOAL, trust="observed")
        chosen = cafe.plan(fitted, goal=GOAL)
    true = cafe.expect(truth, quorum=found.quorum, deadline=found.deadline)
    values = {name: float(getattr(true, name)) for name in FIGURES} | {"cost": GOAL.cost(true)}
    return {
        "family": family,
        "censoring": censoring,
        "availability": availability,
        "uneven": uneven,
        "seed": seed,
        "observed_until": deadline,
        "fitted_family": each.family,
        "fitted_availability": float(each.availability.mean()),
        "availability_interval": list(each.availability_range),
        "fitted_unevenness": each.unevenness,
        "best_deadline": best.deadline,
        "planned_deadline": found.deadline,
        "chosen_deadline": chosen.deadline,
        "loss": loss(chosen, truth, best),
        "loss_of_the_fit": loss(found, truth, best),
        "loss_within_observed": loss(inside, truth, best),
        "extrapolates": found.extrapolates,
        "warnings": list(each.warnings),
        "figures": {
            name: [value, found.intervals[name].low, found.intervals[name].high]
            for name, value in values.items()
        },
    }


def fleets() -> Iterator[tuple[str, float, float, int, float]]:
    """The full grid, a part of it with unequal availabilities, and fleets to count coverage."""
    yield from product(POOLS, CENSORING, AVAILABILITY, (1,), (0.0,))
    yield from product(("lognormal", "gamma"), (0.1, 0.5), (0.5, 0.8), (1,), (1.0,))
    # Each with a seed of its own, so that the errors of two fleets are independent.
    cells = product(POOLS, (0.1, 0.3), (0.7, 0.9), range(3))
    for seed, (family, censoring, availability, _) in enumerate(cells, 100):
        yield family, censoring, availability, seed, 0.0


def main(path: Path) -> None:
    """Measure all fleets that are not in the file yet."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    names = ("family", "censoring", "availability", "seed", "uneven")
    done = {tuple(row[name] for name in names) for row in rows}
    with path.open("a") as file:
        for each in fleets():
            if each not in done:
                file.write(json.dumps(measure(*each)) + "\n")
                file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
