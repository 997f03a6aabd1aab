"""Weibull response times: a hazard that falls (shape < 1, heavy tail) or rises (shape > 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gamma, gammainc

from cafe.keywords import explain_keywords
from cafe.latency.base import Family, Floats, Parameter, Size, clip_negative


@explain_keywords
@dataclass(frozen=True, eq=False)
class Weibull(Family):
    """F(t) = 1 - exp(-(t / scale)^shape).

    Example:
        >>> from cafe import Weibull
        >>> round(float(Weibull(shape=0.8, scale=2.0).quantile(0.95)), 3)
        7.882
    """

    shape: Parameter
    scale: Parameter

    def __post_init__(self) -> None:
        self._check()

    def _power(self, t: ArrayLike) -> Floats:
        with np.errstate(over="ignore"):  # infinity is right far beyond the scale: F is 1
            return np.power(clip_negative(t) / self.scale, self.shape)

    def cdf(self, t: ArrayLike) -> Floats:
        """1 - exp(-(t / scale)^shape), without cancellation for small t."""
        return -np.expm1(-self._power(t))

    def logsf(self, t: ArrayLike) -> Floats:
        """Minus (t / scale)^shape."""
        return -self._power(t)

    def logpdf(self, t: ArrayLike) -> Floats:
        """Log(shape / scale) + (shape - 1) log(t / scale) - (t / scale)^shape."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_x = np.log(clip_negative(t) / self.scale)
            rise = np.where(np.equal(self.shape, 1.0), 0.0, np.subtract(self.shape, 1.0) * log_x)
        inside = np.asarray(t, dtype=float) >= 0
        log_density = np.log(np.divide(self.shape, self.scale)) + rise - self._power(t)
        return np.where(inside, log_density, -np.inf)

    def quantile(self, u: ArrayLike) -> Floats:
        """Scale (-log(1 - u))^(1 / shape)."""
        with np.errstate(divide="ignore"):
            x = -np.log1p(-np.asarray(u, dtype=float))
        return np.asarray(self.scale * np.power(x, 1.0 / np.asarray(self.shape)))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        x = rng.standard_exponential(self._shape(size))
        return np.asarray(self.scale * np.power(x, 1.0 / np.asarray(self.shape)))

    def mean(self) -> Floats:
        """Scale Gamma(1 + 1 / shape)."""
        return np.asarray(self.scale * gamma(1.0 + 1.0 / np.asarray(self.shape)))

    def mean_below(self, t: ArrayLike) -> Floats:
        """The mean times a regularised incomplete gamma function."""
        return np.asarray(
            self.mean() * gammainc(1.0 + 1.0 / np.asarray(self.shape), self._power(t))
        )

    def scaled(self, factor: ArrayLike) -> Weibull:
        """The scale multiplied by the factor."""
        return Weibull(self.shape, np.multiply(self.scale, factor))
