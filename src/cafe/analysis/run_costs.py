"""What a run cost: amounts per round, and totals until the model reached an accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds import History

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
COUNTED = ("downloads", "bytes_down", "bytes_up", "reused")  # per update; theory has none of them


@dataclass(frozen=True)
class Spent:
    """What a run had spent when it first reached an accuracy; all infinite if it never did."""

    time: float
    rounds: float
    work: float
    waste: float
    processing_waste: float
    bytes: float


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
    return {name: np.asarray(column, dtype=float) for name, column in found.items()}


def spent_until(history: History, accuracy: float) -> Spent:
    """What a run had spent at the first evaluation with at least this accuracy."""
    curve = history.curve
    reached = np.flatnonzero(curve.accuracy >= accuracy) if curve is not None else np.empty(0)
    if curve is None or not len(reached):
        return NEVER
    first, after = int(reached[0]), int(curve.round[reached[0]])
    rows = history.by_round
    waste, processing_waste, down, up = (
        float(rows[name][:after].sum())
        for name in ("waste", "processing_waste", "bytes_down", "bytes_up")
    )
    work = float(curve.work[first])
    return Spent(float(curve.time[first]), after, work, waste, processing_waste, down + up)
