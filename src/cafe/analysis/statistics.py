"""Means and their standard errors: over runs, or over blocks of rounds where there is one run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.latency.base import Floats

BLOCKS = 20  # enough to estimate a spread, few enough that blocks are almost independent
LEAST_BLOCK = 2
CLEAR = 2.0  # standard errors beyond which a difference is stated as one
ROUNDING = 1e-12  # the relative difference that rounding may cause between equal sums


@dataclass(frozen=True)
class Estimate:
    """A mean of independent values.

    Attributes:
        mean: the mean.
        error: its standard error; NaN if there are fewer than two values.
        count: the number of values.
    """

    mean: float
    error: float
    count: int

    def interval(self, level: float = 0.95) -> float:
        """Half the width of the confidence interval at this level (Student's t)."""
        from scipy.special import stdtrit

        if not self.error >= 0:
            return float("nan")
        return self.error * float(stdtrit(self.count - 1, (1 + level) / 2))

    def off_by(self, expected: float) -> float:
        """The difference between the mean and the expected value, in standard errors.

        NaN if the values do not vary: then the standard error is not known.
        """
        if not self.error > 0 or not np.isfinite(expected):
            return float("nan")
        return (self.mean - expected) / self.error

    def is_apart(self, expected: float) -> bool:
        """Whether the mean differs from the expected value by more than two standard errors.

        Any difference counts if the values do not vary; none if the standard error is unknown.
        """
        apart = abs(self.mean - expected)
        return bool(self.error >= 0 and apart > CLEAR * self.error)

    def chance(self, expected: float) -> float:
        """The p-value of the mean under the expected value (Student's t, two-sided)."""
        from scipy.special import stdtr

        off = self.off_by(expected)
        return 2 * float(stdtr(self.count - 1, -abs(off))) if off == off else off


def mean(values: ArrayLike) -> Estimate:
    """The mean of independent values; infinite if one of them is infinite."""
    found = np.asarray(values, dtype=float)
    if not found.size:
        return Estimate(float("nan"), float("nan"), 0)
    if not np.all(np.isfinite(found)):
        whole = float("nan") if np.isnan(found).any() else float(found.sum())
        return Estimate(whole, float("nan"), len(found))
    spread = float(found.std(ddof=1)) if len(found) > 1 else float("nan")
    if spread <= ROUNDING * float(np.abs(found).max()):
        spread = 0.0
    return Estimate(float(found.mean()), spread / len(found) ** 0.5, len(found))


def ratio_values(over: ArrayLike, under: ArrayLike) -> Floats:
    """Values whose mean is sum(over) / sum(under) and whose standard error is that of the ratio.

    A mean of ratios is biased if a part has few updates, and infinite if one has none. The ratio
    of sums is neither. To first order it is the mean of these values (the delta method), so they
    give its standard error, and can be paired with those of other runs.
    """
    above, below = np.asarray(over, dtype=float), np.asarray(under, dtype=float)
    whole = float(below.sum())
    if whole == 0:
        return np.full(above.shape, np.inf if above.sum() > 0 else np.nan)
    ratio = float(above.sum()) / whole
    return np.asarray(ratio + (above - ratio * below) * (len(below) / whole))


def ratio(over: ArrayLike, under: ArrayLike) -> Estimate:
    """sum(over) / sum(under) of independent pairs, with its standard error."""
    return mean(ratio_values(over, under))


def paired(values: ArrayLike, others: ArrayLike) -> Estimate:
    """The mean difference of paired values, such as those of runs with the same seed."""
    first, second = np.asarray(values, dtype=float), np.asarray(others, dtype=float)
    with np.errstate(invalid="ignore"):
        return mean(first - second)


def unpaired(values: ArrayLike, others: ArrayLike) -> Estimate:
    """The difference of the means of independent values."""
    first, second = mean(values), mean(others)
    error = float(np.hypot(first.error, second.error))
    return Estimate(first.mean - second.mean, error, min(first.count, second.count))


def blocks(column: NDArray[np.generic]) -> Floats:
    """Sums over blocks of consecutive entries, for a standard error from one run (batch means).

    Consecutive rounds may depend on each other, as ages do; blocks are almost independent.
    """
    number = min(BLOCKS, len(column) // LEAST_BLOCK)
    if number < 2:
        return np.asarray([np.sum(column)], dtype=float)
    starts = np.linspace(0, len(column), number, endpoint=False).astype(np.intp)
    return np.asarray(np.add.reduceat(np.asarray(column, dtype=float), starts))
