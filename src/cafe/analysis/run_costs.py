"""What a run cost: amounts per round, and totals until the model reached an accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds import Fate, History

# Quantities by their names in theory: one amount divided by another, each summed over rounds.
RATIOS = {
    "success_probability": ("updates", "rounds"),
    "reports_per_update": ("used", "updates"),
    "broadcasts": ("rounds", "updates"),
    "waste": ("waste", "updates"),
    "waste_per_gradient": ("waste", "used"),
    "waste_per_time": ("waste", "time"),
    "processing_waste": ("processing_waste", "updates"),
    "processing_waste_per_gradient": ("processing_waste", "used"),
    "processing_waste_per_time": ("processing_waste", "time"),
    "absent_waste": ("absent_waste", "updates"),
    "client_seconds": ("work", "updates"),
    "client_seconds_per_gradient": ("work", "used"),
    "client_seconds_per_time": ("work", "time"),
    "age": ("area", "time"),
    "round_duration": ("time", "rounds"),
    "update_interval": ("time", "updates"),
}
# The shares of client time by the fate of the jobs: one amount divided by another, like RATIOS.
FATE_NAMES = (*(fate.name.lower() for fate in Fate), "open")
WORK_SHARES = {f"work_share_{fate}": (f"work_{fate}", "work") for fate in FATE_NAMES}
ROUNDING = 1e-9  # of sums in another order
COUNTED = ("downloads", "bytes_down", "bytes_up", "reused")  # per update; theory has none of them

# What a run had spent when it first reached an accuracy, by the attribute of Spent.
SPENT_FIGURES = {
    "time_to_accuracy": "time",
    "rounds_to_accuracy": "rounds",
    "client_seconds_to_accuracy": "work",
    "waste_to_accuracy": "waste",
    "processing_waste_to_accuracy": "processing_waste",
    "bytes_to_accuracy": "bytes",
}


@dataclass(frozen=True)
class Spent:
    """What a run had spent when it first reached an accuracy; all infinite if it never did.

    ``gap`` is the time since the evaluation before: the accuracy may have been reached earlier by
    at most this.
    """

    time: float
    rounds: float
    work: float
    waste: float
    processing_waste: float
    bytes: float
    gap: float = float("inf")


NEVER = Spent(*[float("inf")] * 6)


def amounts_by_round(history: History) -> dict[str, Floats]:
    """What each round added to each amount; ``area`` is the mean age integrated over time."""
    rows = history.by_round
    duration = np.asarray(rows["closed"] - rows["opened"], dtype=float)
    before = np.concatenate([[0.0], rows["age"]])[:-1]
    found = {
        "rounds": np.ones(len(duration)),
        "updates": rows["succeeded"],
        "time": duration,
        "area": duration * (before + duration / 2),  # between merges all ages grow at rate 1
    }
    sums = ("used", "waste", "processing_waste", "absent_waste", "work", *COUNTED)
    found |= {name: rows[name] for name in sums}
    # A kept report's time is in "work" when its job ends, and has a fate later.
    by_fate = np.asarray(rows["work_by_fate"], dtype=float)
    rest = found["work"] - by_fate.sum(axis=1)
    rest[np.abs(rest) <= ROUNDING * found["work"]] = 0.0
    columns = [*by_fate.T, rest]
    found |= {f"work_{fate}": column for fate, column in zip(FATE_NAMES, columns, strict=True)}
    return {name: np.asarray(column, dtype=float) for name, column in found.items()}


def spent_until(history: History, accuracy: float) -> Spent:
    """What a run had spent at the first evaluation with at least this accuracy."""
    curve = history.curve
    reached = np.flatnonzero(curve.accuracy >= accuracy) if curve is not None else np.empty(0)
    if curve is None or not len(reached):
        return NEVER
    first, after = int(reached[0]), int(curve.round[reached[0]])
    before = float(curve.time[first - 1]) if first else 0.0
    return _spent(history, after, float(curve.time[first]), float(curve.work[first]), before)


def spent_in_all(history: History) -> Spent:
    """What a run had spent when it ended."""
    time = history.virtual_time
    return _spent(history, history.rounds, time, history.client_seconds, time)


def _spent(history: History, rounds: int, time: float, work: float, before: float) -> Spent:
    """What a run had spent after some rounds."""
    rows = history.by_round
    waste, processing_waste, down, up = (
        float(rows[name][:rounds].sum())
        for name in ("waste", "processing_waste", "bytes_down", "bytes_up")
    )
    return Spent(time, rounds, work, waste, processing_waste, down + up, time - before)
