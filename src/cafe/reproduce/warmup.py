"""Runs without a task, measured once they have forgotten how they began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import Any

from cafe.analysis.statistics import Estimate, ratio
from cafe.reproduce.findings import Rows
from cafe.reproduce.trials import Row, Trial, column
from cafe.rounds import History
from cafe.theory import Expectation

INTERVALS = 10  # mean times between two uses of a client, before which nothing is measured


def warmup(e: Expectation) -> int:
    """Rounds until ages have forgotten that all clients began with age 0.

    Where a client is never heard there is no steady age to wait for.
    """
    return ceil(INTERVALS / float(e.participation_by_client.min())) if e.age < inf else 1


def steady_trials(
    scenario: str,
    point: Mapping[str, Any],
    seeds: Sequence[int],
    rounds: int,
    changes: Mapping[str, Any],
) -> list[Trial]:
    """Trials of a quorum and a deadline, so long that enough rounds are left after the warm-up."""
    here = {f"policy.{key}": point[key] for key in ("quorum", "deadline")}
    return [
        Trial(scenario, point, seed, None, {**changes, **here}, rounds + point["warmup"])
        for seed in seeds
    ]


def settled(trial: Trial, history: History) -> list[Row]:
    """What the rounds after the warm-up add up to."""
    by, first = history.by_round, trial.point["warmup"]
    lengths = (by["closed"] - by["opened"])[first:]
    # A client's age grows with time through a round and falls at its close only.
    ages = by["age"][first - 1 : -1] + lengths / 2
    totals = {
        "rounds": len(lengths),
        "updates": int(by["succeeded"][first:].sum()),
        "used": int(by["used"][first:].sum()),
        "all_in": int((by["reports"] == by["invited"])[first:].sum()),
        "time": float(lengths.sum()),
        "waste": float(by["waste"][first:].sum()),
        "processing": float(by["processing_waste"][first:].sum()),
        "age": float((ages * lengths).sum() / lengths.sum()),
    }
    return [{**trial.point, "seed": trial.seed, **totals}]


def per(rows: Rows, over: str, under: str) -> Estimate:
    """A ratio of what two columns add up to, with its error over the seeds."""
    return ratio([*column(rows, over)], [*column(rows, under)])
