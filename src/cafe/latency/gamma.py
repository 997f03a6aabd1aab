"""Gamma response times: a sum of exponential stages, such as download, compute, upload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln

from cafe.keywords import explain_keywords
from cafe.latency.base import Family, Floats, Parameter, Size, clip_negative
from cafe.latency.moments import by_moments, gamma_parameters, positive_moment


@explain_keywords
@dataclass(frozen=True, eq=False, init=False)
class Gamma(Family):
    """A gamma distribution with mean shape x scale; shape 1 is the exponential.

    Args:
        shape: the number of stages; it need not be whole.
        scale: the mean time of a stage.
        mean: the mean response time; with ``std``, instead of shape and scale.
        std: the standard deviation of the response time. Only shape and scale are stored.

    Example:
        >>> from cafe import Gamma
        >>> float(Gamma(shape=3.0, scale=2.0).mean())
        6.0
        >>> Gamma(mean=6.0, std=3.0)
        Gamma(shape=4.0, scale=1.5)
    """

    shape: Parameter
    scale: Parameter

    def __init__(
        self,
        shape: Parameter | None = None,
        scale: Parameter | None = None,
        *,
        mean: Parameter | None = None,
        std: Parameter | None = None,
    ) -> None:
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "scale", scale)
        if by_moments("Gamma", {"shape": shape, "scale": scale}, {"mean": mean, "std": std}):
            found = gamma_parameters(
                positive_moment("Gamma", "mean", mean), positive_moment("Gamma", "std", std)
            )
            object.__setattr__(self, "shape", found[0])
            object.__setattr__(self, "scale", found[1])
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
