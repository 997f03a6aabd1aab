"""Clients that come and go at random, with exponential times present and away."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import check_whole
from cafe.latency.base import Floats
from cafe.presence.base import ClientNumbers, Mask, PerClient, PresenceState, Saved
from cafe.presence.changes_ahead import Changes, collect_changes
from cafe.presence.parameters import (
    check_per_client,
    check_time,
    check_until,
    expand_to_clients,
    format_mean,
    identify_parameter,
)
from cafe.randomness import check_seed, mix, stream_key, uniform


@dataclass(frozen=True, eq=False, repr=False)
class OnOff:
    """Each client alternates between present and away, for exponential times.

    At time 0 every client is in equilibrium: it is present with probability on / (on + off). Its
    first window has the same distribution as any other, because the times are memoryless.

    Attributes:
        on: the mean time that a client stays present; one number or one per client.
        off: the mean time that a client stays away; one number or one per client.

    Example:
        >>> from cafe.presence import OnOff
        >>> OnOff(on=1800.0, off=5400.0).long_run(clients=10)
        0.25
    """

    on: PerClient = 3600.0
    off: PerClient = 3600.0

    def __post_init__(self) -> None:
        for name in ("on", "off"):
            value = check_per_client(f"OnOff's {name}", getattr(self, name))
            object.__setattr__(self, name, value)

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0."""
        clients = check_whole("The number of clients", clients)
        return _State(*self._spread(clients), check_seed(seed))

    def long_run(self, clients: int) -> float | Floats:
        """The share on / (on + off)."""
        if not np.ndim(self.on) and not np.ndim(self.off):
            clients = 1
        on, off = self._spread(clients)
        share = 1.0 / (1.0 + off / on)
        return float(share[0]) if clients == 1 else np.asarray(share)

    def describe(self) -> str:
        """A few words for messages."""
        on, off = np.asarray(self.on), np.asarray(self.off)
        return (
            f"clients are present for {format_mean(on, ' s')} and away for {format_mean(off, ' s')}"
            if on.ndim or off.ndim
            else f"clients are present for {on:g} s and away for {off:g} s on average"
        )

    def _spread(self, clients: int) -> tuple[Floats, Floats]:
        on: Any = self.on
        off: Any = self.off
        return expand_to_clients("OnOff's on", on, clients), expand_to_clients(
            "OnOff's off", off, clients
        )

    def __repr__(self) -> str:
        on: Any = self.on
        off: Any = self.off
        return f"OnOff(on={identify_parameter(on)}, off={identify_parameter(off)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnOff) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class _State:
    """Each client's current window: its number, its end, and whether the client is away in it.

    The length of a window depends only on the seed, the client and the window's number. Windows
    are processed one by one, so the sum of the lengths is the same whether the state is queried
    often or rarely.
    """

    def __init__(self, on: Floats, off: Floats, seed: int) -> None:
        self._on, self._off, self._now = on, off, 0.0
        self._words = mix(stream_key(seed, "presence"), np.arange(len(on)))
        self._away = uniform(mix(self._words, 0)) * (on + off) >= on
        self._number = np.zeros(len(on), dtype=np.int64)
        self._end = self._length(np.arange(len(on)))

    def away(self, now: float) -> Mask:
        """Which clients are away at ``now``."""
        self._advance(now)
        return self._away.copy()

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """The end of each client's window; ``now`` for those that are away."""
        self._advance(now, clients)
        return np.where(self._away[clients], now, self._end[clients])

    def next_change(self, now: float) -> float:
        """The earliest end of a window."""
        self._advance(now)
        return float(self._end.min())

    def changes(self, now: float) -> Changes:
        """About half as many changes as there are clients."""
        self._advance(now)
        later = copy.copy(self)
        later._number, later._away = self._number.copy(), self._away.copy()
        later._end = self._end.copy()
        until = now + 0.25 * len(self._end) / float(np.sum(1.0 / (self._on + self._off)))
        comes, leaves = list[Floats](), list[Floats]()
        over = np.flatnonzero(later._end < until)
        while over.size:
            away, ends = later._away[over], later._end[over]
            comes.append(ends[away])
            leaves.append(ends[~away])
            later._enter_next(over)
            over = over[later._end[over] < until]
        return collect_changes(now, until, comes, leaves)

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """The probability exp(-(until - now) / on) for clients that are present now, else 0."""
        check_until(now, until)
        self._advance(now, clients)
        return np.where(self._away[clients], 0.0, np.exp((now - until) / self._on[clients]))

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """Do nothing: a job does not change when a client is present."""

    def save(self) -> Saved:
        """Nothing: the state follows from the seed and the time."""
        return {}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to restore."""

    def _advance(self, now: float, clients: ClientNumbers | None = None) -> None:
        """Move each client, or only some, to its window at ``now``."""
        self._now = check_time(self._now, now)
        if clients is None:
            over = np.flatnonzero(self._end <= now)
        else:
            some = np.asarray(clients)
            over = some[self._end[some] <= now]
        while over.size:
            self._enter_next(over)
            over = over[self._end[over] <= now]

    def _enter_next(self, clients: ClientNumbers) -> None:
        self._number[clients] += 1
        self._away[clients] ^= True
        self._end[clients] += self._length(clients)

    def _length(self, clients: ClientNumbers) -> Floats:
        draw = uniform(mix(self._words[clients], self._number[clients] + 1))
        mean = np.where(self._away[clients], self._off[clients], self._on[clients])
        return np.asarray(-np.log1p(-draw) * mean)
