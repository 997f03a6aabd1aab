"""Uniform response times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cafe.errors import InputError
from cafe.keywords import explain_keywords
from cafe.latency.base import Family, Floats, Parameter, Size


@explain_keywords
@dataclass(frozen=True, eq=False)
class Uniform(Family):
    """All times between ``low`` and ``high`` are equally likely.

    Example:
        >>> from cafe import Uniform
        >>> float(Uniform(low=1.0, high=3.0).cdf(2.0))
        0.5
    """

    low: Parameter
    high: Parameter

    def __post_init__(self) -> None:
        self._check(zero=("low",))
        if np.any(np.greater_equal(self.low, self.high)):
            raise InputError(
                f"Uniform's high must be above its low. Got low {self.low} and high {self.high}. "
                "For a fixed time use Constant."
            )

    def _inside(self, t: ArrayLike) -> Floats:
        return np.asarray(np.clip(np.asarray(t, dtype=float), self.low, self.high))

    @property
    def _width(self) -> Floats:
        return np.subtract(self.high, self.low)

    def cdf(self, t: ArrayLike) -> Floats:
        """(t - low) / (high - low) inside the interval."""
        return np.asarray((self._inside(t) - self.low) / self._width)

    def logsf(self, t: ArrayLike) -> Floats:
        """Log((high - t) / (high - low)) inside the interval."""
        with np.errstate(divide="ignore"):
            return np.log((self.high - self._inside(t)) / self._width)

    def logpdf(self, t: ArrayLike) -> Floats:
        """Minus log(high - low) inside the interval."""
        inside = self._inside(t) == np.asarray(t, dtype=float)
        return np.where(inside, -np.log(self._width), -np.inf)

    def quantile(self, u: ArrayLike) -> Floats:
        """Low + u (high - low)."""
        return np.asarray(self.low + np.asarray(u, dtype=float) * self._width)

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        return np.asarray(self.low + rng.random(self._shape(size)) * self._width)

    def mean(self) -> Floats:
        """The midpoint of the interval."""
        return np.add(self.low, self.high) / 2

    def mean_below(self, t: ArrayLike) -> Floats:
        """F(t) times the midpoint of low and t, inside the interval."""
        return np.asarray(self.cdf(t) * 0.5 * (self._inside(t) + self.low))

    def scaled(self, factor: ArrayLike) -> Uniform:
        """Both ends multiplied by the factor."""
        return Uniform(np.multiply(self.low, factor), np.multiply(self.high, factor))

    def breaks(self) -> Floats:
        """Both ends."""
        return np.unique(np.concatenate([np.ravel(self.low), np.ravel(self.high)]))
