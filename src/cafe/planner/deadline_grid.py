"""The deadlines that a search considers: their range, and a grid that misses no jump.

The grid is logarithmic, because useful deadlines span orders of magnitude.
"""

from __future__ import annotations

import numpy as np

from cafe.federation import Federation, total
from cafe.latency import Latency, Mixture, Various
from cafe.latency.base import Floats

PER_DECADE = 16
FEWEST = 1e-6  # expected reports below which a deadline is too short to be useful
LAST = 1e-9  # share of a client's reports that may come after the longest deadline ...
LATE = 1e-12  # ... and expected late reports of all clients after it
LANDMARKS = np.array([1e-3, 0.05, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.999, 1 - 1e-4, 1 - 1e-6])
MANY_STEPS = 50


def deadline_grid(federation: Federation, low: float, high: float) -> Floats:
    """Deadlines evenly spaced in the logarithm, plus quantiles and jumps of the response times."""
    if low >= high:
        return np.array([high])
    points = int(PER_DECADE * np.log10(high / low)) + 2
    grid = np.geomspace(low, high, points)
    grid[0], grid[-1] = low, high
    marks = np.concatenate([_landmarks(federation.latency), _steps(federation.latency)])
    return np.unique(np.concatenate([grid, marks[(marks > low) & (marks < high)]]))


def _steps(latency: Latency) -> Floats:
    """The jumps of the response times' cdf; none if there are more than 2000."""
    steps = latency.breaks()
    return steps if steps.size <= 2000 else steps[:0]


def _landmarks(latency: Latency) -> Floats:
    """Quantiles of all components and parts, which may be narrower than the grid's spacing."""
    if isinstance(latency, Mixture):
        return np.concatenate([_landmarks(part) for part in latency.components])
    if isinstance(latency, Various):
        return np.concatenate([_landmarks(part) for part in latency.parts[:MANY_STEPS]])
    if latency.kinds > MANY_STEPS:
        return np.empty(0)
    return np.ravel(latency.quantile(LANDMARKS[:, None]))


def deadline_range(federation: Federation, fewest: float = FEWEST) -> tuple[float, float]:
    """The range of useful deadlines: from about the first expected report to the last one."""
    latency = federation.latency
    high = float(np.max(latency.quantile(1.0 - LAST)))
    high = max([high, *latency.breaks()[-1:].tolist()])
    while total(federation.number, np.broadcast_to(latency.sf(high), federation.kinds)) > LATE:
        high *= 1.5
    low = high
    while low > high * 1e-30 and _expected_reports(federation, low) > fewest:
        low /= 4.0
    return first_time(federation, fewest, low, high), high


def first_time(federation: Federation, reports: float, low: float, high: float) -> float:
    """The first time in [low, high] by which ``reports`` reports are expected; exact at a jump."""
    if _expected_reports(federation, low) >= reports:
        return low
    while high - low > 1e-9 * high:
        middle = low**0.5 * high**0.5 if high > 2 * low else 0.5 * (low + high)
        enough = _expected_reports(federation, middle) >= reports
        low, high = (low, middle) if enough else (middle, high)
    return high


def _expected_reports(federation: Federation, t: float) -> float:
    return total(federation.number, federation.report(t))
