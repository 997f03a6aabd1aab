"""Response times of clients that are now of one sort, now of another: on Wi-Fi or not, idle or busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from cafe.errors import InputError
from cafe.latency.base import Floats, Latency, Size


@dataclass(frozen=True)
class Mixture(Latency):
    """Each time is drawn from one of ``components``, chosen anew with probability ``weights``.

    Weights are scaled to sum to 1. Components may describe several kinds, all of them as many.
    """

    components: Sequence[Latency]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        components, weights = tuple(self.components), np.array(self.weights, dtype=float)
        if not components or weights.shape != (len(components),):
            raise InputError(
                "A Mixture needs one weight per component, and at least one of each. "
                f"Got {len(components)} components and {weights.size} weights."
            )
        if not np.all(np.isfinite(weights) & (weights > 0)):
            raise InputError(f"A Mixture's weights must be positive and finite. Got {self.weights}.")
        if len({c.kinds for c in components} - {1}) > 1:
            raise InputError("A Mixture's components must describe one number of kinds.")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", tuple((weights / weights.sum()).tolist()))

    @property
    def kinds(self) -> int:
        """How many kinds its components describe."""
        return max(c.kinds for c in self.components)

    def take(self, index: NDArray[np.intp]) -> Mixture:
        """The mixture of the components' kinds at ``index``."""
        shared = np.zeros_like(index)
        taken = [c.take(index if c.kinds > 1 else shared) for c in self.components]
        return Mixture(taken, self.weights)

    def cdf(self, t: ArrayLike) -> Floats:
        """The weighted mean of the components' cdf."""
        return np.asarray(sum(w * c.cdf(t) for w, c in zip(self.weights, self.components, strict=True)))

    def sf(self, t: ArrayLike) -> Floats:
        """The weighted mean of the components' sf."""
        return np.asarray(sum(w * c.sf(t) for w, c in zip(self.weights, self.components, strict=True)))

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
        """By bisection between the components' own quantiles, to the last bit or nearly."""
        share = np.asarray(u, dtype=float)
        each = np.stack(np.broadcast_arrays(*(c.quantile(share) for c in self.components)))
        low, high = each.min(axis=0), each.max(axis=0)
        # 1 - F decides where F is near 1: there F alone has no digits left.
        for _ in range(200):
            middle = 0.5 * (low + high)
            middle = np.where(np.isfinite(middle), middle, high)
            below = np.where(share < 0.5, self.cdf(middle) < share, self.sf(middle) > 1 - share)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Independent draws, each from a component drawn for it."""
        draws = np.stack(np.broadcast_arrays(*(c.sample(rng, size) for c in self.components)))
        which = rng.choice(len(self.components), size=draws.shape[1:], p=self.weights)
        return np.asarray(np.take_along_axis(draws, which[None], axis=0)[0])

    def mean(self) -> Floats:
        """The weighted mean of the components' means."""
        return np.asarray(sum(w * c.mean() for w, c in zip(self.weights, self.components, strict=True)))

    def mean_below(self, t: ArrayLike) -> Floats:
        """The weighted mean of the components' parts below t."""
        return np.asarray(
            sum(w * c.mean_below(t) for w, c in zip(self.weights, self.components, strict=True))
        )

    def scaled(self, factor: ArrayLike) -> Mixture:
        """Every component times the factor."""
        return Mixture([c.scaled(factor) for c in self.components], self.weights)

    def breaks(self) -> Floats:
        """The components' breaks."""
        return np.unique(np.concatenate([c.breaks() for c in self.components]))
