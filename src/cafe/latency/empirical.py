"""Response times as they were observed, with no family assumed."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError
from cafe.latency.base import Floats, Latency, Size, to_floats


@dataclass(frozen=True, eq=False)
class Empirical(Latency):
    """The step function through observed ``times``, each with a weight (equal unless given).

    All its ``kinds`` are alike; kinds with other times are other objects, side by side in
    :class:`Various`.
    """

    times: ArrayLike
    weights: ArrayLike = 1.0
    kinds: int = 1
    _values: Floats = field(init=False, repr=False)
    _masses: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times, weights = to_floats(self.times), to_floats(self.weights)
        if times is None or times.ndim != 1 or not times.size or not _usable(times):
            raise InputError(
                "Empirical's times must be a flat list of positive, finite numbers, at least one. "
                f"Got {reprlib.repr(self.times)}."
            )
        if weights is None or weights.shape not in ((), times.shape) or not _usable(weights):
            raise InputError(
                "Empirical's weights must be positive, finite numbers, as many as its times "
                f"({times.size}). Got {reprlib.repr(self.weights)}."
            )
        if not isinstance(self.kinds, int) or self.kinds < 1:
            raise InputError(f"Empirical's kinds must be at least 1. Got {self.kinds!r}.")
        values, where = np.unique(times, return_inverse=True)
        masses = np.bincount(where, np.broadcast_to(weights, times.shape))
        masses = masses / masses.sum()
        values.setflags(write=False)
        masses.setflags(write=False)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_masses", masses)

    def take(self, index: NDArray[np.intp]) -> Empirical:
        """As many kinds as asked: all are alike."""
        return Empirical(self._values, self._masses, len(index))

    def _each(self, value: Floats) -> Floats:
        """One value for all kinds, given to each of them."""
        shape = () if self.kinds == 1 else (self.kinds,)
        return np.broadcast_to(value, np.broadcast_shapes(np.shape(value), shape))

    def _up_to(self, masses: Floats, t: ArrayLike) -> Floats:
        """The sum of the masses at times up to t."""
        totals = np.concatenate([[0.0], np.cumsum(masses)])
        at = np.searchsorted(self._values, np.asarray(t, dtype=float), "right")
        return self._each(totals[at])

    def cdf(self, t: ArrayLike) -> Floats:
        """The share of observed times up to t."""
        return np.minimum(self._up_to(self._masses, t), 1.0)

    def sf(self, t: ArrayLike) -> Floats:
        """The share of observed times beyond t, summed from the far end."""
        beyond = np.concatenate([np.cumsum(self._masses[::-1])[::-1], [0.0]])
        at = np.searchsorted(self._values, np.asarray(t, dtype=float), "right")
        return self._each(np.minimum(beyond[at], 1.0))

    def logsf(self, t: ArrayLike) -> Floats:
        """The logarithm of the share beyond t."""
        with np.errstate(divide="ignore"):
            return np.log(self.sf(t))

    def logpdf(self, t: ArrayLike) -> Floats:
        """None: observed times are single values."""
        raise InputError("Empirical has no density: its times are single values.")

    def quantile(self, u: ArrayLike) -> Floats:
        """The smallest observed time with at least the share u up to it; 0 for u = 0."""
        share = np.asarray(u, dtype=float)
        # A share that is a sum of masses must find its own time, not the next, despite rounding.
        at = np.searchsorted(np.cumsum(self._masses), share * (1 - 1e-12), "left")
        found = self._values[np.minimum(at, self._values.size - 1)]
        return self._each(np.where(share > 0, found, 0.0))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Independent draws from the observed times."""
        lead = (size,) if isinstance(size, int) else tuple(size)
        drawn = lead if self.kinds == 1 else (*lead, self.kinds)
        return np.asarray(rng.choice(self._values, size=drawn, p=self._masses))

    def mean(self) -> Floats:
        """The weighted mean of the observed times."""
        return self._each(self._values @ self._masses)

    def mean_below(self, t: ArrayLike) -> Floats:
        """The weighted sum of the observed times up to t."""
        return self._up_to(self._values * self._masses, t)

    def scaled(self, factor: ArrayLike) -> Empirical:
        """Every observed time times the factor, which must be one number."""
        if np.size(factor) > 1:
            raise InputError("Empirical is scaled by one number: its kinds are all alike.")
        return Empirical(self._values * float(np.asarray(factor)), self._masses, self.kinds)

    def breaks(self) -> Floats:
        """The observed times."""
        return self._values

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Empirical)
            and self.kinds == other.kinds
            and np.array_equal(self._values, other._values)
            and np.array_equal(self._masses, other._masses)
        )

    def __hash__(self) -> int:
        return hash((Empirical, self.kinds, self._values.tobytes(), self._masses.tobytes()))


def _usable(values: Floats) -> bool:
    return bool(np.all(np.isfinite(values) & (values > 0)))
