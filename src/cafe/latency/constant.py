"""Constant response times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cafe.errors import InputError
from cafe.keywords import explain_keywords
from cafe.latency.base import Family, Floats, Parameter, Size


@explain_keywords
@dataclass(frozen=True, eq=False)
class Constant(Family):
    """Every report arrives exactly ``value`` after the broadcast.

    Example:
        >>> from cafe import Constant
        >>> Constant(2.5).cdf([2.0, 3.0])
        array([0., 1.])
    """

    value: Parameter

    def __post_init__(self) -> None:
        self._check()

    def cdf(self, t: ArrayLike) -> Floats:
        """0 before the value, 1 from it on."""
        return np.where(np.asarray(t, dtype=float) >= self.value, 1.0, 0.0)

    def logsf(self, t: ArrayLike) -> Floats:
        """0 before the value, minus infinity from it on."""
        return np.where(np.asarray(t, dtype=float) >= self.value, -np.inf, 0.0)

    def logpdf(self, t: ArrayLike) -> Floats:
        """Raise InputError: a constant has no density."""
        raise InputError(
            "Constant has no density: all its probability is at one time. Use another family."
        )

    def quantile(self, u: ArrayLike) -> Floats:
        """The value; 0 for u = 0."""
        return np.where(np.asarray(u, dtype=float) > 0, self.value, 0.0)

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """An array filled with the value."""
        return np.broadcast_to(np.asarray(self.value), self._shape(size)).copy()

    def mean(self) -> Floats:
        """The value."""
        return np.asarray(self.value)

    def mean_below(self, t: ArrayLike) -> Floats:
        """The value if t is at least the value, else 0."""
        return self.value * self.cdf(t)

    def scaled(self, factor: ArrayLike) -> Constant:
        """The value times the factor."""
        return Constant(np.multiply(self.value, factor))

    def breaks(self) -> Floats:
        """The value."""
        return np.unique(self.value)
