"""Exponential response times, the paper's model (Sec. 3), with or without a fixed part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from cafe.keywords import explain_keywords
from cafe.latency.base import Family, Floats, Parameter, Size, clip_negative
from cafe.latency.moments import by_moments, positive_moment


@explain_keywords
@dataclass(frozen=True, eq=False, init=False)
class Exponential(Family):
    """F(t) = 1 - exp(-rate t). ``rate`` is the paper's lambda, reports per unit of time.

    Args:
        rate: reports per unit of time.
        mean: the mean response time, 1 / rate; give one of the two. Only the rate is stored.

    Example:
        >>> from cafe import Exponential
        >>> round(float(Exponential(rate=0.5).quantile(0.95)), 3)
        5.991
        >>> Exponential(mean=2.0) == Exponential(rate=0.5)
        True
    """

    rate: Parameter

    def __init__(self, rate: Parameter | None = None, *, mean: Parameter | None = None) -> None:
        if by_moments("Exponential", {"rate": rate}, {"mean": mean}):
            rate = 1.0 / positive_moment("Exponential", "mean", mean)
        object.__setattr__(self, "rate", rate)
        self._check()

    def cdf(self, t: ArrayLike) -> Floats:
        """1 - exp(-rate t), without cancellation for small t."""
        return -np.expm1(-self.rate * clip_negative(t))

    def logsf(self, t: ArrayLike) -> Floats:
        """Minus rate t."""
        return -self.rate * clip_negative(t)

    def logpdf(self, t: ArrayLike) -> Floats:
        """Log(rate) - rate t."""
        inside = np.asarray(t, dtype=float) >= 0
        return np.where(inside, np.log(self.rate) - self.rate * clip_negative(t), -np.inf)

    def quantile(self, u: ArrayLike) -> Floats:
        """Minus log(1 - u) / rate."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log1p(-np.asarray(u, dtype=float)) / self.rate)

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        return rng.standard_exponential(self._shape(size)) / self.rate

    def mean(self) -> Floats:
        """1 / rate."""
        return np.asarray(1.0 / np.asarray(self.rate))

    def mean_below(self, t: ArrayLike) -> Floats:
        """(1 - exp(-x)(1 + x)) / rate with x = rate t."""
        return np.asarray(gammainc(2.0, self.rate * clip_negative(t)) / self.rate)

    def scaled(self, factor: ArrayLike) -> Exponential:
        """The rate divided by the factor."""
        return Exponential(np.asarray(np.divide(self.rate, factor)))


@explain_keywords
@dataclass(frozen=True, eq=False)
class ShiftedExponential(Family):
    """A fixed time ``shift``, then an exponential one: F(t) = 1 - exp(-rate (t - shift)).

    Example:
        >>> from cafe import ShiftedExponential
        >>> float(ShiftedExponential(shift=1.0, rate=0.5).mean())
        3.0
    """

    shift: Parameter
    rate: Parameter

    def __post_init__(self) -> None:
        self._check(zero=("shift",))

    def _beyond(self, t: ArrayLike) -> Floats:
        return self.rate * np.maximum(np.asarray(t, dtype=float) - self.shift, 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        """1 - exp(-rate (t - shift)) from the shift on, 0 before it."""
        return -np.expm1(-self._beyond(t))

    def logsf(self, t: ArrayLike) -> Floats:
        """Minus rate (t - shift) from the shift on, 0 before it."""
        return -self._beyond(t)

    def logpdf(self, t: ArrayLike) -> Floats:
        """Log(rate) - rate (t - shift) from the shift on."""
        inside = np.asarray(t, dtype=float) >= self.shift
        return np.where(inside, np.log(self.rate) - self._beyond(t), -np.inf)

    def quantile(self, u: ArrayLike) -> Floats:
        """Shift - log(1 - u) / rate."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.shift - np.log1p(-np.asarray(u, dtype=float)) / self.rate)

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        return self.shift + rng.standard_exponential(self._shape(size)) / self.rate

    def mean(self) -> Floats:
        """Shift + 1 / rate."""
        return np.asarray(self.shift + 1.0 / np.asarray(self.rate))

    def mean_below(self, t: ArrayLike) -> Floats:
        """F(t) x shift plus the part of the exponential itself."""
        return np.asarray(self.shift * self.cdf(t) + gammainc(2.0, self._beyond(t)) / self.rate)

    def scaled(self, factor: ArrayLike) -> ShiftedExponential:
        """Shift and mean both multiplied by the factor."""
        return ShiftedExponential(np.multiply(self.shift, factor), np.divide(self.rate, factor))

    def breaks(self) -> Floats:
        """The shift: no client reports before it."""
        return np.unique(self.shift)
