"""What a latency is: the random time from the broadcast to a client's report.

A latency describes one kind of client (scalar parameters) or many kinds at once (arrays of one
length): ``Exponential(rate=1.0)`` or ``Exponential(rate=np.array([...]))``. All methods broadcast
as NumPy does, the kinds on the last axis, so a million clients are a few arrays and never a million
objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError

Floats = NDArray[np.float64]
Parameter = float | Floats
Size = int | tuple[int, ...]
TINY = 1e-300  # a positive parameter below this is as good as 0: its inverse overflows


class Latency(ABC):
    """The distribution of a response time, on the non-negative half-line."""

    @property
    @abstractmethod
    def kinds(self) -> int:
        """How many kinds of client this describes: 1, or the length of its parameter arrays."""

    @abstractmethod
    def take(self, index: NDArray[np.intp]) -> Latency:
        """The latency of the kinds at ``index``; a kind may be taken more than once."""

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Floats:
        """The probability F(t) that the report is there by t."""

    @abstractmethod
    def sf(self, t: ArrayLike) -> Floats:
        """1 - F(t), accurate where F(t) rounds to 1."""

    @abstractmethod
    def quantile(self, u: ArrayLike) -> Floats:
        """The smallest t with F(t) >= u, for u in [0, 1]."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Independent draws: of shape ``size`` for one kind, ``size + (kinds,)`` for several."""

    @abstractmethod
    def mean(self) -> Floats:
        """E[X]."""

    @abstractmethod
    def mean_below(self, t: ArrayLike) -> Floats:
        """E[X; X <= t], the part of the mean below t; divided by F(t) it is E[X | X <= t]."""

    @abstractmethod
    def scaled(self, factor: ArrayLike) -> Latency:
        """The latency of ``factor`` times X: of a client that is ``factor`` times as slow."""

    @abstractmethod
    def logpdf(self, t: ArrayLike) -> Floats:
        """The log-density; a latency whose times fall on single values has none and says so."""

    @abstractmethod
    def logsf(self, t: ArrayLike) -> Floats:
        """Log(1 - F(t)): what a report that is missing at t is worth to a likelihood."""

    @abstractmethod
    def breaks(self) -> Floats:
        """Times where F jumps or bends, sorted; between two of them it is smooth."""


class Family(Latency):
    """A latency that is a few numbers per kind: all that a parametric family need not write itself.

    A family is one frozen dataclass whose every field is a parameter.
    """

    @property
    def kinds(self) -> int:
        """How many kinds of client this describes: 1, or the length of its parameter arrays."""
        return max(np.size(value) for value in vars(self).values())

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return dict(vars(self))

    def take(self, index: NDArray[np.intp]) -> Self:
        """The latency of the kinds at ``index``."""
        picked: Any = {k: np.broadcast_to(v, self.kinds)[index] for k, v in vars(self).items()}
        return replace(self, **picked)  # type: ignore[type-var]

    def sf(self, t: ArrayLike) -> Floats:
        """1 - F(t), accurate where F(t) rounds to 1."""
        return np.exp(self.logsf(t))

    def breaks(self) -> Floats:
        """No break: the family is smooth everywhere.

        A log-normal time after a shift begins so gently that all its derivatives are 0 there.
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
                    f"Got {value.flat[at]:g}{place}: no response time could be drawn from it."
                )
            value.setflags(write=False)
            object.__setattr__(self, name, value if value.ndim else float(value))
        sizes = {k: np.size(v) for k, v in vars(self).items() if np.ndim(v)}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"{type(self).__name__}'s arrays must have one length, an entry per kind of "
                f"client. Got {', '.join(f'{k}: {v}' for k, v in sizes.items())}."
            )

    def _numbers(self, name: str, given: object) -> Floats:
        value = to_floats(given)
        if value is None or value.ndim > 1 or value.size == 0:
            raise InputError(
                f"{type(self).__name__}'s {name} must be a number or a flat array of numbers, "
                f"one per kind of client. Got {given!r}."
            )
        value += 0.0  # -0 becomes 0: equal parameters have equal bytes, so equal hashes
        return value

    def _shape(self, size: Size) -> tuple[int, ...]:
        """The shape of a sample: the asked size, then the kinds where a parameter is an array."""
        lead = (size,) if isinstance(size, int) else tuple(size)
        return (*lead, self.kinds) if any(np.ndim(v) for v in vars(self).values()) else lead


def to_floats(given: object) -> Floats | None:
    """A copy as floats, or None for what is not made of numbers: text is not, even ``"1.0"``."""
    try:
        value = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    return np.array(value, dtype=float) if value.dtype.kind in "iuf" else None


def clip_negative(t: ArrayLike) -> Floats:
    """Times as floats, those before the broadcast moved to it: nothing reports before 0."""
    return np.asarray(np.maximum(np.asarray(t, dtype=float), 0.0))
