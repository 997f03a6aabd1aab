"""Runs without a task, measured after a warm-up in which ages reach their steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import Any

from cafe.reproduce.rows import Row
from cafe.reproduce.trials import Point, Trial
from cafe.rounds import History
from cafe.theory import Expectation

INTERVALS = 10  # length of the warm-up, in mean times between two uses of a client


def warmup_rounds(e: Expectation) -> int:
    """Rounds after which the ages no longer depend on their start at 0.

    It is 1 if some client is never used, because its age has no steady state.
    """
    return ceil(INTERVALS / float(e.participation_by_client.min())) if e.age < inf else 1


def steady_trials(
    scenario: str, point: Point, seeds: Sequence[int], rounds: int, changes: Mapping[str, Any]
) -> list[Trial]:
    """Trials of the point's quorum and deadline, with ``rounds`` rounds after the warm-up."""
    policy = {f"policy.{key}": point[key] for key in ("quorum", "deadline")}
    return [
        Trial(scenario, point, seed, None, {**changes, **policy}, rounds + point["warmup"])
        for seed in seeds
    ]


def steady_totals(trial: Trial, history: History) -> list[Row]:
    """The totals of a run over the rounds after its warm-up, as one row."""
    by, first = history.by_round, trial.point["warmup"]
    lengths = (by["closed"] - by["opened"])[first:]
    # A client's age grows during a round and falls only at its close.
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
