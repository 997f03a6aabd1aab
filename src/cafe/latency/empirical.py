"""Observed response times, without an assumed family."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError, check_whole
from cafe.latency.base import Floats, Latency, Size, to_floats


@dataclass(frozen=True, eq=False)
class Empirical(Latency):
    """The empirical distribution of observed ``times``.

    Attributes:
        times: the observed times.
        weights: the weight of each time; all equal if left out.
        kinds: the number of kinds of client, which all have the same distribution. For kinds with
            different times, combine several objects in :class:`Various`.

    Example:
        >>> from cafe import Empirical
        >>> float(Empirical([1.0, 2.0, 2.0, 5.0]).cdf(2.0))
        0.75
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
                "Empirical's times must be a flat, non-empty list of positive, finite numbers. "
                f"Got {reprlib.repr(self.times)}."
            )
        if weights is None or weights.shape not in ((), times.shape) or not _usable(weights):
            raise InputError(
                "Empirical's weights must be positive, finite numbers, one for each of its "
                f"{times.size} times. Got {reprlib.repr(self.weights)}."
            )
        check_whole("Empirical's kinds", self.kinds)
        values, where = np.unique(times, return_inverse=True)
        masses = np.bincount(where, np.broadcast_to(weights, times.shape))
        masses = masses / masses.sum()
        values.setflags(write=False)
        masses.setflags(write=False)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_masses", masses)

    def take(self, index: NDArray[np.intp]) -> Empirical:
        """A copy with ``len(index)`` kinds, since all kinds are equal."""
        return Empirical(self._values, self._masses, len(index))

    def _each(self, value: Floats) -> Floats:
        """The value of all kinds, broadcast to each of them."""
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
        """The share of observed times after t, summed from the end to keep its digits."""
        beyond = np.concatenate([np.cumsum(self._masses[::-1])[::-1], [0.0]])
        at = np.searchsorted(self._values, np.asarray(t, dtype=float), "right")
        return self._each(np.minimum(beyond[at], 1.0))

    def logsf(self, t: ArrayLike) -> Floats:
        """The logarithm of the share of observed times after t."""
        with np.errstate(divide="ignore"):
            return np.log(self.sf(t))

    def logpdf(self, t: ArrayLike) -> Floats:
        """Raise InputError: single values have no density."""
        raise InputError(
            "Empirical has no density: its times are single values. Fit a family to them."
        )

    def quantile(self, u: ArrayLike) -> Floats:
        """The smallest observed time t with F(t) >= u; 0 for u = 0."""
        share = np.asarray(u, dtype=float)
        # The factor absorbs rounding errors: a u that equals F(t) must give t, not the next time.
        at = np.searchsorted(np.cumsum(self._masses), share * (1 - 1e-12), "left")
        found = self._values[np.minimum(at, self._values.size - 1)]
        return self._each(np.where(share > 0, found, 0.0))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Draw independent times from the observed ones."""
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
            raise InputError(
                "Empirical's factor must be one number, because all its kinds are equal. "
                f"Got {np.size(factor)}: combine several Empirical objects in Various."
            )
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
