"""Response times with a fixed time added, such as the time of gradient steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError
from cafe.latency.base import Floats, Latency, Parameter, Size, to_floats
from cafe.latency.constant import Constant
from cafe.latency.empirical import Empirical
from cafe.latency.exponential import Exponential, ShiftedExponential
from cafe.latency.lognormal import LogNormal
from cafe.latency.mixture import Mixture
from cafe.latency.uniform import Uniform
from cafe.latency.various import Various

MOST_BREAKS = 1_000_000  # more breaks would need too much memory


def shifted(latency: Latency, by: ArrayLike) -> Latency:
    """The latency of X + ``by``; ``by`` is one number or one per kind of client, not negative.

    A family that can hold the shift in its own parameters keeps its class, an exponential becomes a
    :class:`~cafe.latency.ShiftedExponential`, and any other is wrapped in :class:`Shifted`.
    """
    shift = _checked(by)
    latency = _of_kinds(latency, np.size(shift))
    if not np.any(shift):
        return latency
    with np.errstate(over="ignore"):  # the family raises an error if the sum is not finite
        match latency:
            case Exponential():
                return ShiftedExponential(shift, latency.rate)
            case ShiftedExponential():
                return ShiftedExponential(latency.shift + shift, latency.rate)
            case LogNormal():
                return LogNormal(latency.mu, latency.sigma, latency.shift + shift)
            case Uniform() if np.all(latency.low + shift < latency.high + shift):
                return Uniform(latency.low + shift, latency.high + shift)
            case Constant():
                return Constant(latency.value + shift)
            case Empirical() if np.ndim(shift) == 0:
                return Empirical(np.asarray(latency.times) + shift, latency.weights, latency.kinds)
            case Mixture():
                return Mixture([shifted(c, shift) for c in latency.components], latency.weights)
            case Various():
                return _various(latency, np.broadcast_to(shift, latency.kinds))
            case Shifted():
                return Shifted(latency.latency, latency.shift + shift)
            case _:
                return Shifted(latency, shift)


@dataclass(frozen=True, eq=False)
class Shifted(Latency):
    """``shift`` + X, where X has any ``latency``; for latencies without a shift parameter.

    The shift is one number or one per kind. Use :func:`shifted`, which returns a simpler class if
    there is one.
    """

    latency: Latency
    shift: Parameter

    def __post_init__(self) -> None:
        if not isinstance(self.latency, Latency):
            raise InputError(
                f"Shifted's latency must be a latency, such as cafe.Gamma(2.0, 1.0). "
                f"Got {self.latency!r}."
            )
        shift = _checked(self.shift)
        object.__setattr__(self, "shift", shift)
        object.__setattr__(self, "latency", _of_kinds(self.latency, np.size(shift)))

    @property
    def kinds(self) -> int:
        """The number of kinds of the latency."""
        return self.latency.kinds

    def take(self, index: NDArray[np.intp]) -> Shifted:
        """The latency of the kinds at ``index``, each with its own shift."""
        shift = self.shift[index] if isinstance(self.shift, np.ndarray) else self.shift
        return Shifted(self.latency.take(index), shift)

    def _after(self, t: ArrayLike) -> Floats:
        """The time since the shift, on the right side of every jump of F.

        t - shift may round to the wrong side of a jump. ``sample`` and ``quantile`` return
        shift + jump, so the jump must count for every t from there on.
        """
        at = np.asarray(t, dtype=float)
        after = np.asarray(at - self.shift)
        jumps = self.latency.breaks()
        if not jumps.size:
            return after
        jump = jumps[np.minimum(np.searchsorted(jumps, after), jumps.size - 1)]
        before = np.where(after == jump, np.nextafter(jump, -np.inf), after)
        return np.where(self.shift + jump <= at, np.maximum(after, jump), before)

    def cdf(self, t: ArrayLike) -> Floats:
        """F(t - shift)."""
        return self.latency.cdf(self._after(t))

    def sf(self, t: ArrayLike) -> Floats:
        """1 - F(t - shift)."""
        return self.latency.sf(self._after(t))

    def logsf(self, t: ArrayLike) -> Floats:
        """Log(1 - F(t - shift))."""
        return self.latency.logsf(self._after(t))

    def logpdf(self, t: ArrayLike) -> Floats:
        """The log-density at t - shift.

        A density that is infinite at the shift counts as 0 there, because an integration may
        evaluate that point.
        """
        density = self.latency.logpdf(self._after(t))
        return np.where(np.isposinf(density), -np.inf, density)

    def quantile(self, u: ArrayLike) -> Floats:
        """Shift + the latency's quantile."""
        return np.asarray(self.shift + self.latency.quantile(u))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Shift + the latency's draws."""
        return np.asarray(self.shift + self.latency.sample(rng, size))

    def mean(self) -> Floats:
        """Shift + the latency's mean."""
        return np.asarray(self.shift + self.latency.mean())

    def mean_below(self, t: ArrayLike) -> Floats:
        """F(t) x shift plus the part of the latency itself."""
        after = self._after(t)
        return np.asarray(self.shift * self.latency.cdf(after) + self.latency.mean_below(after))

    def scaled(self, factor: ArrayLike) -> Shifted:
        """Shift and latency both multiplied by the factor."""
        return Shifted(self.latency.scaled(factor), np.multiply(self.shift, factor))

    def breaks(self) -> Floats:
        """Every shift, and the latency's breaks after every shift.

        If these are more than a million, only those of some shifts are returned, including the
        last.
        """
        own = np.concatenate([[0.0], self.latency.breaks()])
        shifts = np.unique(self.shift)
        most = max(MOST_BREAKS // own.size, 1)
        if shifts.size > most:
            shifts = shifts[np.linspace(shifts.size - 1, 0, most).astype(np.intp)]
        return np.unique(shifts[:, None] + own)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Shifted)
            and self.latency == other.latency
            and np.array_equal(self.shift, other.shift)
        )

    def __hash__(self) -> int:
        return hash((Shifted, self.latency, np.asarray(self.shift).tobytes()))


def _checked(by: object) -> Parameter:
    """The shift as one number, or as a read-only array with an entry per kind."""
    value = to_floats(by)
    if value is None or value.ndim > 1 or not value.size:
        raise InputError(
            "A shift must be a number or a flat array of numbers, one per kind of client. "
            f"Got {by!r}."
        )
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        raise InputError(
            "A shift must be not negative and finite. "
            f"Got {value.flat[int(np.argmax(bad))]:g}: no response time can be drawn with it."
        )
    value += 0.0  # -0 becomes 0, so that equal shifts have equal bytes and hashes
    value.setflags(write=False)
    return value if value.size > 1 else float(value.item())


def _of_kinds(latency: Latency, shifts: int) -> Latency:
    """The latency with one kind for every shift."""
    if shifts == 1 or latency.kinds == shifts:
        return latency
    if latency.kinds > 1:
        raise InputError(
            f"There must be one shift, or one per kind of client ({latency.kinds}). Got {shifts}."
        )
    return latency.take(np.zeros(shifts, dtype=np.intp))


def _various(latency: Various, by: Floats) -> Various:
    """Each part shifted by its own entries of ``by``."""
    ends = np.cumsum([part.kinds for part in latency.parts])
    own = np.split(by, ends[:-1])
    return Various([shifted(p, _alike(b)) for p, b in zip(latency.parts, own, strict=True)])


def _alike(by: Floats) -> Parameter:
    """One number if all entries are equal, as the simpler classes need it."""
    return float(by[0]) if np.all(by == by[0]) else by
