"""Log-normal response times: a product of many small delays, after an optional fixed time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from cafe.errors import InputError
from cafe.keywords import explain_keywords
from cafe.latency.base import Family, Floats, Parameter, Size
from cafe.latency.moments import by_moments, lognormal_parameters, positive_moment


@explain_keywords
@dataclass(frozen=True, eq=False, init=False)
class LogNormal(Family):
    """``shift`` + exp(mu + sigma Z), Z standard normal; exp(mu) is the median after the shift.

    Args:
        mu: the mean of the logarithm.
        sigma: the standard deviation of the logarithm.
        shift: a fixed time before.
        mean: the mean response time, shift included; with ``std``, instead of mu and sigma.
        std: the standard deviation of the response time. Only mu, sigma and shift are stored.

    Example:
        >>> from cafe import LogNormal
        >>> float(LogNormal(mu=0.0, sigma=0.5, shift=1.0).quantile(0.5))
        2.0
        >>> round(float(LogNormal(mean=8.0, std=3.0).mean()), 9)
        8.0
    """

    mu: Parameter
    sigma: Parameter
    shift: Parameter = 0.0

    def __init__(
        self,
        mu: Parameter | None = None,
        sigma: Parameter | None = None,
        shift: Parameter = 0.0,
        *,
        mean: Parameter | None = None,
        std: Parameter | None = None,
    ) -> None:
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "shift", shift)
        if by_moments("LogNormal", {"mu": mu, "sigma": sigma}, {"mean": mean, "std": std}):
            after = positive_moment("LogNormal", "mean", mean) - self._numbers("shift", shift)
            if np.any(after <= 0):
                raise InputError(
                    f"LogNormal's mean must be above its shift, which is part of it. Got mean "
                    f"{mean} and shift {shift}."
                )
            found = lognormal_parameters(after, positive_moment("LogNormal", "std", std))
            object.__setattr__(self, "mu", found[0])
            object.__setattr__(self, "sigma", found[1])
        self._check(zero=("shift",), signed=("mu",))

    def _z(self, t: ArrayLike) -> Floats:
        after = np.maximum(np.asarray(t, dtype=float) - self.shift, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray((np.log(after) - self.mu) / self.sigma)

    def cdf(self, t: ArrayLike) -> Floats:
        """The normal cdf of the standardised logarithm."""
        return np.asarray(ndtr(self._z(t)))

    def logsf(self, t: ArrayLike) -> Floats:
        """The normal log-cdf of the standardised logarithm's negative."""
        return np.asarray(log_ndtr(-self._z(t)))

    def logpdf(self, t: ArrayLike) -> Floats:
        """The normal log-density of log(t - shift), minus log(t - shift)."""
        z = self._z(t)
        log_after = np.where(np.isfinite(z), z, 0.0) * self.sigma + self.mu
        inside = -0.5 * z**2 - log_after - np.log(self.sigma) - 0.5 * np.log(2 * np.pi)
        return np.where(np.isfinite(z), inside, -np.inf)

    def quantile(self, u: ArrayLike) -> Floats:
        """Shift + exp(mu + sigma z_u)."""
        return np.asarray(self.shift + np.exp(self.mu + self.sigma * ndtri(u)))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        z = rng.standard_normal(self._shape(size))
        return np.asarray(self.shift + np.exp(self.mu + self.sigma * z))

    def mean(self) -> Floats:
        """Shift + exp(mu + sigma^2 / 2)."""
        return np.asarray(self.shift + np.exp(self.mu + 0.5 * np.square(self.sigma)))

    def mean_below(self, t: ArrayLike) -> Floats:
        """F(t) x shift plus the part of the log-normal itself."""
        z = self._z(t)
        own = np.exp(self.mu + 0.5 * np.square(self.sigma)) * ndtr(z - self.sigma)
        return np.asarray(self.shift * ndtr(z) + own)

    def scaled(self, factor: ArrayLike) -> LogNormal:
        """Log(factor) added to mu, and the shift multiplied by the factor."""
        return LogNormal(
            np.add(self.mu, np.log(factor)), self.sigma, np.multiply(self.shift, factor)
        )
