"""Clients that are present in one window of every day, each with its own start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole, is_finite_number
from cafe.latency.base import Floats
from cafe.presence.base import ClientNumbers, Mask, PresenceState, Saved
from cafe.presence.changes_ahead import Changes, collect_changes
from cafe.presence.parameters import check_time, present_until
from cafe.randomness import check_seed, mix, stream_key, uniform


@dataclass(frozen=True)
class DayNight:
    """Each client is present in one window of every day.

    A client's window starts at the same time of every day. That time is uniform over ``spread`` of
    a day with time 0 in the middle, so with ``spread=0`` all windows start at 0, ``day``,
    2 ``day`` and so on.

    Attributes:
        day: the length of a day, in the latency's unit.
        share: the length of a window as a share of a day; above 0 and at most 1.
        spread: the range of the clients' starts as a share of a day; from 0 to 1.

    Example:
        >>> from cafe.presence import DayNight
        >>> DayNight(share=0.25).describe()
        'each client is present for 0.25 of every 86400 s'
    """

    day: float = 86400.0
    share: float = 0.5
    spread: float = 0.25

    def __post_init__(self) -> None:
        object.__setattr__(self, "day", check_positive("DayNight's day", self.day))
        for name in ("share", "spread"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not is_finite_number(value) or not 0 <= value <= 1:
                raise InputError(f"DayNight's {name} must be from 0 to 1. Got {value!r}.")
            object.__setattr__(self, name, float(value))
        if self.share == 0:
            raise InputError(
                "DayNight's share must be above 0. Got 0: the clients would never be present."
            )

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0."""
        return _State(self, check_whole("The number of clients", clients), check_seed(seed))

    def long_run(self, clients: int) -> float:
        """The length of a window as a share of a day."""
        return self.share

    def describe(self) -> str:
        """A few words for messages."""
        return f"each client is present for {self.share:.4g} of every {self.day:g} s"


class _State:
    """Each client's first start of a window; the rest follows from the time."""

    def __init__(self, presence: DayNight, clients: int, seed: int) -> None:
        self._day = presence.day
        self._length = presence.share * presence.day
        self._always = presence.share == 1
        words = mix(stream_key(seed, "presence"), np.arange(clients))
        self._start = presence.spread * presence.day * (uniform(words) - 0.5)

    def away(self, now: float) -> Mask:
        """Which clients are away at ``now``."""
        if self._always:
            return np.zeros(len(self._start), dtype=bool)
        return now >= self._opened(self._start, now) + self._length

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """The end of each client's window; ``now`` for those that are away."""
        if self._always:
            return np.full(len(clients), np.inf)
        return np.maximum(self._opened(self._start[clients], now) + self._length, now)

    def next_change(self, now: float) -> float:
        """The earliest end or start of a window after ``now``."""
        if self._always:
            return float("inf")
        number = self._number(self._start, now)
        closes = self._start + number * self._day + self._length
        opens = self._start + (number + 1) * self._day
        return float(min(np.min(closes, where=closes > now, initial=np.inf), opens.min()))

    def changes(self, now: float) -> Changes:
        """The changes of about a day."""
        if self._always:
            return collect_changes(now, now, [], [])
        number = self._number(self._start, now)
        this, following, last = (self._start + (number + k) * self._day for k in range(3))
        closes = [this + self._length, following + self._length]
        return collect_changes(now, float(last.min()), [following], closes)

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """1 for the clients whose window lasts beyond ``until``, 0 for the others."""
        return present_until(self.leaves(clients, now), now, until)

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """Do nothing: a job does not change when a client is present."""

    def save(self) -> Saved:
        """Nothing: the state follows from the seed and the time."""
        return {}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to restore."""

    def _number(self, start: Floats, now: float) -> Floats:
        """The number of the last window that has started by ``now``.

        A window's start is ``start + number * day`` in floating point. The quotient may be off by
        one there, so it is compared with the starts themselves. Then a client is away exactly at
        the time that ``leaves`` returned.
        """
        now = check_time(-np.inf, now)
        number = np.asarray(np.floor((now - start) / self._day))
        number -= start + number * self._day > now
        number += start + (number + 1) * self._day <= now
        return number

    def _opened(self, start: Floats, now: float) -> Floats:
        return np.asarray(start + self._number(start, now) * self._day)
