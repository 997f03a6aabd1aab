"""Gamma response times: a sum of exponential stages, such as download, compute, upload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln

from cafe.latency.base import Family, Floats, Parameter, Size, clip_negative


@dataclass(frozen=True, eq=False)
class Gamma(Family):
    """A gamma distribution with mean shape x scale; shape 1 is the exponential.

    Example:
        >>> from cafe import Gamma
        >>> float(Gamma(shape=3.0, scale=2.0).mean())
        6.0
    """

    shape: Parameter
    scale: Parameter

    def __post_init__(self) -> None:
        self._check()

    def cdf(self, t: ArrayLike) -> Floats:
        """The regularised lower incomplete gamma function."""
        return np.asarray(gammainc(self.shape, clip_negative(t) / self.scale))

    def logsf(self, t: ArrayLike) -> Floats:
        """The logarithm of the regularised upper incomplete gamma function."""
        x = clip_negative(t) / self.scale
        share = gammaincc(self.shape, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            # gammaincc loses its digits and then underflows near x = 700. Beyond that, two steps of
            # Legendre's continued fraction are used.
            step = x + 1.0 - self.shape
            step = step + np.subtract(self.shape, 1.0) / (step + 2.0)
            far = self.shape * np.log(x) - x - np.log(step) - gammaln(self.shape)
            near = np.log(share)
        return np.where(np.isposinf(x), -np.inf, np.where(share > 1e-290, near, far))

    def logpdf(self, t: ArrayLike) -> Floats:
        """(shape - 1) log x - x - log Gamma(shape) - log scale with x = t / scale."""
        x = clip_negative(t) / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.subtract(self.shape, 1.0) * np.log(x)
        rise = np.where(np.equal(self.shape, 1.0), 0.0, rise)
        inside = np.asarray(t, dtype=float) >= 0
        return np.where(inside, rise - x - gammaln(self.shape) - np.log(self.scale), -np.inf)

    def quantile(self, u: ArrayLike) -> Floats:
        """The inverse of the regularised incomplete gamma function, times the scale."""
        return np.asarray(self.scale * gammaincinv(self.shape, u))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        return rng.standard_gamma(self.shape, self._shape(size)) * self.scale

    def mean(self) -> Floats:
        """Shape x scale."""
        return np.multiply(self.shape, self.scale)

    def mean_below(self, t: ArrayLike) -> Floats:
        """The mean times the cdf of a gamma with shape + 1."""
        return np.asarray(
            self.mean() * gammainc(np.add(self.shape, 1.0), clip_negative(t) / self.scale)
        )

    def scaled(self, factor: ArrayLike) -> Gamma:
        """The scale multiplied by the factor."""
        return Gamma(self.shape, np.multiply(self.scale, factor))
