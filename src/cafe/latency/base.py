"""The base classes of latencies: the random time from the broadcast to a client's report.

A latency describes one kind of client (scalar parameters) or many kinds at once (arrays of one
length): ``Exponential(rate=1.0)`` or ``Exponential(rate=np.array([...]))``. All methods broadcast
like NumPy functions, with the kinds on the last axis. So a million clients are a few arrays, not a
million objects.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError

Floats = NDArray[np.float64]
Parameter = float | Floats
Size = int | tuple[int, ...]
TINY = 1e-300  # positive parameters must be at least this: the inverse of a smaller one overflows


class Latency(ABC):
    """The distribution of a response time, on the non-negative half-line."""

    @property
    @abstractmethod
    def kinds(self) -> int:
        """The number of kinds of client: 1, or the length of the parameter arrays."""

    @abstractmethod
    def take(self, index: NDArray[np.intp]) -> Latency:
        """The latency of the kinds at ``index``; a kind may be taken more than once."""

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Floats:
        """The probability F(t) that the report has arrived by t."""

    @abstractmethod
    def sf(self, t: ArrayLike) -> Floats:
        """1 - F(t), accurate even if F(t) rounds to 1."""

    @abstractmethod
    def quantile(self, u: ArrayLike) -> Floats:
        """The smallest t with F(t) >= u, for u in [0, 1]."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Draw independent times: shape ``size`` for one kind, ``size + (kinds,)`` for several."""

    @abstractmethod
    def mean(self) -> Floats:
        """E[X]."""

    @abstractmethod
    def mean_below(self, t: ArrayLike) -> Floats:
        """E[X; X <= t], the part of the mean below t; divided by F(t) it is E[X | X <= t]."""

    @abstractmethod
    def scaled(self, factor: ArrayLike) -> Latency:
        """The latency of ``factor`` times X: a client that is ``factor`` times as slow."""

    @abstractmethod
    def logpdf(self, t: ArrayLike) -> Floats:
        """The log-density. Raises InputError if all times fall on single values."""

    @abstractmethod
    def logsf(self, t: ArrayLike) -> Floats:
        """Log(1 - F(t)), the log-likelihood of a report that is missing at t."""

    @abstractmethod
    def breaks(self) -> Floats:
        """The times at which F jumps or has a kink, sorted; F is smooth between them."""


class Family(Latency):
    """A parametric latency: the methods that all parametric families share.

    A family is a frozen dataclass in which every field is a parameter.
    """

    @property
    def kinds(self) -> int:
        """The number of kinds of client: 1, or the length of the parameter arrays."""
        sizes = [value.size for value in vars(self).values() if isinstance(value, np.ndarray)]
        return max(sizes, default=1)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(vars(self))

    def take(self, index: NDArray[np.intp]) -> Self:
        """The latency of the kinds at ``index``."""
        picked: Any = {k: np.broadcast_to(v, self.kinds)[index] for k, v in vars(self).items()}
        return replace(self, **picked)  # type: ignore[type-var]

    def sf(self, t: ArrayLike) -> Floats:
        """1 - F(t), accurate even if F(t) rounds to 1."""
        return np.exp(self.logsf(t))

    def breaks(self) -> Floats:
        """None: the family is smooth everywhere.

        This includes the log-normal with a shift, whose derivatives are all 0 at the shift.
        """
        return np.empty(0)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Family)
            and type(self) is type(other)
            and all(np.array_equal(v, vars(other)[k]) for k, v in vars(self).items())
        )

    def __hash__(self) -> int:
        return hash((type(self), *(np.asarray(v).tobytes() for v in vars(self).values())))

    def _check(self, *, zero: tuple[str, ...] = (), signed: tuple[str, ...] = ()) -> None:
        """Check the parameters and store each as a float or a read-only array.

        They are positive unless named in ``zero`` (may be 0) or ``signed`` (any finite number).
        """
        for name, given in vars(self).items():
            if type(given) is float and given >= TINY and given != math.inf:
                continue  # most parameters of a search: there is nothing to change
            value = self._numbers(name, given)
            bad = ~np.isfinite(value)
            if name not in signed:
                bad |= (value < 0) if name in zero else ~(value >= TINY)
            if bad.any():
                at = int(np.argmax(bad))
                sort = "not negative and " if name in zero else "positive and "
                sort = "" if name in signed else sort
                place = f" for client kind {at}" if value.ndim else ""
                raise InputError(
                    f"{type(self).__name__}'s {name} must be {sort}finite. "
                    f"Got {value.flat[at]:g}{place}: no response time can be drawn with it."
                )
            value.setflags(write=False)
            object.__setattr__(self, name, value if value.ndim else float(value))
        sizes = {k: np.size(v) for k, v in vars(self).items() if np.ndim(v)}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"{type(self).__name__}'s arrays must all have one length, with one entry per kind "
                f"of client. Got {', '.join(f'{k}: {v}' for k, v in sizes.items())}."
            )

    def _numbers(self, name: str, given: object) -> Floats:
        value = to_floats(given)
        if value is None or value.ndim > 1 or value.size == 0:
            raise InputError(
                f"{type(self).__name__}'s {name} must be a number or a flat array of numbers, "
                f"one per kind of client. Got {given!r}."
            )
        value += 0.0  # -0 becomes 0, so that equal parameters have equal bytes and hashes
        return value

    def _shape(self, size: Size) -> tuple[int, ...]:
        """The shape of a sample: ``size``, then the kinds if a parameter is an array."""
        lead = (size,) if isinstance(size, int) else tuple(size)
        return (*lead, self.kinds) if any(np.ndim(v) for v in vars(self).values()) else lead


def to_floats(given: object) -> Floats | None:
    """A copy as an array of floats, or None if it is not numeric; text never is, even ``"1.0"``."""
    try:
        value = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    return np.array(value, dtype=float) if value.dtype.kind in "iuf" else None


def clip_negative(t: ArrayLike) -> Floats:
    """Times as floats, with negative ones set to 0: no client reports before the broadcast."""
    return np.asarray(np.maximum(np.asarray(t, dtype=float), 0.0))
