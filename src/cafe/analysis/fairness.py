"""How evenly a run treats its clients: ages, merges, and the accuracy for each client.

A tenth is a tenth of the clients, rounded up. Which clients are in it differs from run to run.
"""

from __future__ import annotations

import math

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds import History

FAIRNESS = (
    "oldest_tenth_age",
    "oldest_tenth_age_ratio",
    "least_merged_tenth",
    "worst_tenth_accuracy",
    "accuracy_spread",
)


def fairness(history: History) -> dict[str, float]:
    """The figures of a run by name; NaN for those that are not known.

    ``oldest_tenth_age``: the mean age of the tenth of the clients with the highest mean ages.
    ``oldest_tenth_age_ratio``: the same, divided by the mean age of all clients.
    ``least_merged_tenth``: the mean number of merges of the tenth with the fewest merges, divided
    by the mean of all.
    ``worst_tenth_accuracy``: the mean accuracy for the tenth with the lowest accuracies.
    ``accuracy_spread``: the standard deviation of the accuracy over clients.
    """
    age, merged = history.age_by_client, history.merged_by_client.astype(float)
    if not np.isfinite(age).all():  # before the first checkpoint
        merged = np.full(len(merged), np.nan)
    oldest = -_lowest_tenth(-age)
    known = history.accuracy_by_client
    accuracy = np.empty(0) if known is None else known[np.isfinite(known)]
    return {
        "oldest_tenth_age": oldest,
        "oldest_tenth_age_ratio": _over(oldest, float(np.mean(age))),
        "least_merged_tenth": _over(_lowest_tenth(merged), float(np.mean(merged))),
        "worst_tenth_accuracy": _lowest_tenth(accuracy),
        "accuracy_spread": float(np.std(accuracy)) if len(accuracy) else math.nan,
    }


def _lowest_tenth(values: Floats) -> float:
    """The mean of the lowest tenth of the values; NaN without values."""
    if not len(values):
        return math.nan
    return float(np.sort(values)[: math.ceil(len(values) / 10)].mean())


def _over(amount: float, mean: float) -> float:
    return amount / mean if mean > 0 else math.nan
