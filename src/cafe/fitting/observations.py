"""Observed response times and missed deadlines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.wording import format_count

NAMELESS = "client"


@dataclass(frozen=True, eq=False, init=False)
class Observations:
    """One entry per client and round: a response time, or a deadline that passed without a report.

    Attributes:
        seconds: the response times; NaN where the client missed its deadline.
        deadline: how long each client was waited for; infinite if nothing limited the wait.
        clients: the clients' names, in the order in which they first appear.
        code: which of ``clients`` each entry belongs to.
        sent: when each request was sent, in seconds since the epoch (UTC), NaN where that is not
            known; None if it is not known for any entry.

    Example:
        >>> import cafe
        >>> cafe.Observations([0.8, float("nan"), 1.1], deadline=3.0, client=["a", "b", "a"])
        Observations(2 reports and 1 missed deadline of 2 clients)
    """

    seconds: Floats
    deadline: Floats
    clients: tuple[str, ...]
    code: NDArray[np.intp]
    sent: Floats | None

    def __init__(
        self,
        seconds: ArrayLike,
        deadline: ArrayLike | None = None,
        client: ArrayLike | Sequence[str] | None = None,
        sent: ArrayLike | None = None,
    ) -> None:
        """Check the entries and keep read-only copies.

        Args:
            seconds: response times, NaN (or None) for a missed deadline.
            deadline: one for all or one per entry; left out if nothing limited the wait.
            client: the name of each entry's client; left out if all belong to one client.
            sent: when each request was sent, in seconds since the epoch; left out if not known.
        """
        times = _flat("seconds", seconds)
        if times.size == 0:
            raise InputError("seconds must have at least one observation. Got none.")
        limits = np.broadcast_to(np.inf, times.shape).copy()
        if deadline is not None:
            limits[:] = _of_length("deadline", _flat("deadline", deadline, scalar=True), times.size)
        bad = find_unusable(times, limits)
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"Observation {at}: {explain_unusable(times[at], limits[at])}")
        names, code = _coded(client, times.size)
        when = None if sent is None else _of_length("sent", _flat("sent", sent), times.size)
        if when is not None and np.isinf(when).any():
            raise InputError("sent must be seconds since the epoch, or NaN. Got an infinite time.")
        for array in (times, limits, code, when):
            if array is not None:
                array.setflags(write=False)
        object.__setattr__(self, "seconds", times)
        object.__setattr__(self, "deadline", limits)
        object.__setattr__(self, "clients", names)
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "sent", when)

    def __len__(self) -> int:
        return self.seconds.size

    @property
    def client(self) -> NDArray[np.str_]:
        """The name of each entry's client."""
        return np.array(self.clients)[self.code]

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether the client reported by its deadline."""
        return ~np.isnan(self.seconds)

    @property
    def event_times(self) -> Floats:
        """The response times of the clients that reported."""
        return self.seconds[self.reported]

    def __repr__(self) -> str:
        reports = int(self.reported.sum())
        return (
            f"Observations({format_count(reports, 'report')} and "
            f"{format_count(len(self) - reports, 'missed deadline')} "
            f"of {format_count(len(self.clients), 'client')})"
        )


def find_unusable(seconds: Floats, deadline: Floats) -> NDArray[np.bool_]:
    """Which entries cannot be used; :func:`explain_unusable` says why."""
    missed = np.isnan(seconds)
    possible = (seconds > 0) & np.isfinite(seconds) & (seconds <= deadline)
    return ~np.where(missed, (deadline > 0) & np.isfinite(deadline), possible & (deadline > 0))


def explain_unusable(seconds: float, deadline: float) -> str:
    """The error message for an entry that cannot be used."""
    if math.isnan(deadline) or deadline <= 0:
        return (
            f"a deadline must be above 0. Got {deadline:g}: no report can arrive by then. "
            "Leave it out if nothing limited the wait."
        )
    if math.isnan(seconds):
        return (
            "there must be a response time or the deadline that was missed. Got neither: give one "
            "of the two."
        )
    if math.isinf(seconds) or seconds <= 0:
        return (
            f"a response time must be above 0 and finite. Got {seconds:g}. "
            "Leave it out (NaN, or an empty field) if the client missed the deadline."
        )
    return (
        f"a response time must not be after its deadline. Got {seconds:g} with the deadline "
        f"{deadline:g}: the server cannot have seen it. Leave the time out (NaN, or an empty "
        "field) or correct the deadline."
    )


def _flat(name: str, given: ArrayLike, *, scalar: bool = False) -> Floats:
    try:
        value = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers. Got {given!r:.80}.") from None
    if value.ndim == 0 and not scalar:
        raise InputError(
            f"{name} must be an array of numbers, one entry per client and round. Got {given!r}."
        )
    if value.ndim > 1:
        raise InputError(
            f"{name} must be a flat array, one entry per client and round. "
            f"Got {value.ndim} dimensions: ravel it."
        )
    return value


def _of_length(name: str, values: Floats, size: int) -> Floats:
    if values.ndim and values.size != size:
        raise InputError(
            f"{name} must be one number or one per observation ({size}). Got {values.size}."
        )
    return values


def _coded(client: ArrayLike | None, size: int) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The distinct names in the order of first appearance, and each entry's index among them."""
    if client is None:
        return (NAMELESS,), np.zeros(size, dtype=np.intp)
    given = client if isinstance(client, list) else np.asarray(client).tolist()
    if np.ndim(client) > 1:
        raise InputError(f"client must be a flat list of names. Got {np.ndim(client)} dimensions.")
    if not isinstance(given, list) or len(given) != size:
        count = len(given) if isinstance(given, list) else "a single value"
        raise InputError(f"client must have one name per observation ({size}). Got {count}.")
    place: dict[str, int] = {}
    code = [place.setdefault(name, len(place)) for name in map(str, given)]
    return tuple(place), np.array(code, dtype=np.intp)
