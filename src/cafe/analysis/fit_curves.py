"""Observed response times beside a fit: the Kaplan-Meier curve with its band, and fitted shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cafe.latency.base import Floats

if TYPE_CHECKING:
    from cafe.fitting import Fit


class ObservedCurve(NamedTuple):
    """The share of clients that have reported by each time, with a 95% band."""

    times: Floats
    share: Floats
    low: Floats
    high: Floats


class FitPoint(NamedTuple):
    """The share that has reported by a time: observed, its standard error, and fitted."""

    time: float
    observed: float
    error: float
    fitted: float


def observed_curve(found: Fit) -> ObservedCurve:
    """One minus the Kaplan-Meier estimate, which starts with 0 at time 0."""
    times, survival, error = found.kaplan_meier()
    share = 1.0 - np.concatenate([[1.0], survival])
    band = 1.96 * np.concatenate([[0.0], error])
    low, high = np.clip(share - band, 0, 1), np.clip(share + band, 0, 1)
    return ObservedCurve(np.concatenate([[0.0], times]), share, low, high)


def fit_points(found: Fit, most: int) -> list[FitPoint]:
    """Observed and fitted shares at up to ``most`` times, spread evenly over the reports."""
    times, survival, error = found.kaplan_meier()
    picked = np.unique(np.linspace(0, times.size - 1, most).round().astype(int))
    return [
        FitPoint(
            float(times[i]),
            float(1 - survival[i]),
            float(error[i]),
            float(found.latency.cdf(times[i])),
        )
        for i in picked
    ]
