"""Mixtures: each response time comes from one of several latencies, such as busy and idle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from cafe.errors import InputError, check_type
from cafe.latency.base import Floats, Latency, Size, to_floats


@dataclass(frozen=True)
class Mixture(Latency):
    """Each time is drawn from one of ``components``, chosen at random for every draw.

    Attributes:
        components: the latencies; they may describe several kinds, all the same number.
        weights: the probabilities of the components, scaled to sum to 1.

    Example:
        >>> from cafe import Exponential, Mixture
        >>> round(float(Mixture([Exponential(2.0), Exponential(0.2)], [0.9, 0.1]).mean()), 3)
        0.95
    """

    components: Sequence[Latency]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        check_type("A Mixture's components", self.components, Sequence, "a list of latencies")
        components, weights = tuple(self.components), to_floats(self.weights)
        if not all(isinstance(c, Latency) for c in components):
            raise InputError(f"A Mixture's components must be latencies. Got {self.components!r}.")
        if weights is None or not np.all(np.isfinite(weights) & (weights > 0)):
            raise InputError(
                f"A Mixture's weights must be positive, finite numbers. Got {self.weights!r}."
            )
        if not components or weights.shape != (len(components),):
            raise InputError(
                "A Mixture needs one weight per component, and at least one of each. "
                f"Got {len(components)} components and {weights.size} weights."
            )
        kinds = max(c.kinds for c in components)
        if {c.kinds for c in components} - {1, kinds}:
            raise InputError(
                "A Mixture's components must describe the same number of kinds, or one kind. "
                f"Got {', '.join(str(c.kinds) for c in components)}."
            )
        # A component of one kind is repeated, so that each kind has its own draws.
        shared = np.zeros(kinds, dtype=np.intp)
        components = tuple(c if c.kinds == kinds else c.take(shared) for c in components)
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))

    @property
    def kinds(self) -> int:
        """The number of kinds that the components describe."""
        return max(c.kinds for c in self.components)

    def take(self, index: NDArray[np.intp]) -> Mixture:
        """The mixture of the components' kinds at ``index``."""
        return Mixture([c.take(index) for c in self.components], self.weights)

    def cdf(self, t: ArrayLike) -> Floats:
        """The weighted mean of the components' cdf."""
        return self._mean_of([c.cdf(t) for c in self.components])

    def sf(self, t: ArrayLike) -> Floats:
        """The weighted mean of the components' sf."""
        return self._mean_of([c.sf(t) for c in self.components])

    def _mean_of(self, values: list[Floats]) -> Floats:
        return np.asarray(sum(w * v for w, v in zip(self.weights, values, strict=True)))

    def _log_mean(self, logs: list[Floats]) -> Floats:
        stacked = np.stack(np.broadcast_arrays(*logs))
        column = (-1,) + (1,) * (stacked.ndim - 1)
        return np.asarray(logsumexp(stacked, axis=0, b=np.reshape(self.weights, column)))

    def logsf(self, t: ArrayLike) -> Floats:
        """The logarithm of the weighted mean of the components' sf."""
        return self._log_mean([c.logsf(t) for c in self.components])

    def logpdf(self, t: ArrayLike) -> Floats:
        """The logarithm of the weighted mean of the components' densities."""
        return self._log_mean([c.logpdf(t) for c in self.components])

    def quantile(self, u: ArrayLike) -> Floats:
        """By bisection between the quantiles of the components, nearly to the last bit."""
        share = np.asarray(u, dtype=float)
        each = np.stack(np.broadcast_arrays(*(c.quantile(share) for c in self.components)))
        first, high = each.min(axis=0), each.max(axis=0)
        low = first
        # If F is near 1, it has no digits left, so 1 - F is compared instead.
        for _ in range(200):
            middle = 0.5 * (low + high)
            middle = np.where(np.isfinite(middle), middle, high)
            if np.all((middle <= low) | (middle >= high)):
                break
            below = np.where(share < 0.5, self.cdf(middle) < share, self.sf(middle) > 1 - share)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(np.where(share > 0, high, first))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Draw independent times, each from a component chosen at random."""
        lead = (size,) if isinstance(size, int) else tuple(size)
        shape = (*lead, *self.mean().shape)
        draws = np.stack([c.sample(rng, size).reshape(shape) for c in self.components])
        which = rng.choice(len(self.components), size=shape, p=self.weights)
        return np.asarray(np.take_along_axis(draws, which[None], axis=0)[0])

    def mean(self) -> Floats:
        """The weighted mean of the components' means."""
        return self._mean_of([c.mean() for c in self.components])

    def mean_below(self, t: ArrayLike) -> Floats:
        """The weighted mean of the components' parts below t."""
        return self._mean_of([c.mean_below(t) for c in self.components])

    def scaled(self, factor: ArrayLike) -> Mixture:
        """Every component multiplied by the factor."""
        return Mixture([c.scaled(factor) for c in self.components], self.weights)

    def breaks(self) -> Floats:
        """The components' breaks."""
        return np.unique(np.concatenate([c.breaks() for c in self.components]))
