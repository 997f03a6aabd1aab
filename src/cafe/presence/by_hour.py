"""Clients that are present with a probability that depends on the hour of the day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole
from cafe.latency.base import Floats, to_floats
from cafe.presence.base import ClientNumbers, Mask, PresenceState, Saved
from cafe.presence.parameters import check_time, present_until
from cafe.randomness import check_seed, mix, stream_key, uniform

_SMALLEST = 1e-3  # an absence that is rarer than this is treated as none


@dataclass(frozen=True)
class ByHour:
    """In each slot of the day, such as an hour, each client is present with a given probability.

    Clients and slots are independent. Time 0 is the start of a day.

    Attributes:
        share: the probability in each slot of a day, from 0 to 1; 24 numbers for hours. A
            probability above 0.999 counts as 1.
        day: the length of a day, in the latency's unit.

    Example:
        >>> from cafe.presence import ByHour
        >>> ByHour(share=[0.2] * 8 + [1.0] * 16).describe()
        'clients are present with a probability from 0.2 to 1 in 24 slots of 86400 s'
    """

    share: Sequence[float]
    day: float = 86400.0

    def __post_init__(self) -> None:
        given = to_floats(self.share)
        if given is None or given.ndim != 1 or given.size == 0:
            raise InputError(
                "ByHour's share must be a list of probabilities, one for each slot of a day. "
                f"Got {self.share!r:.60}."
            )
        bad = ~((given >= 0) & (given <= 1))
        if bad.any():
            raise InputError(
                f"ByHour's share must be from 0 to 1. Got {given[np.argmax(bad)]:g} for slot "
                f"{int(np.argmax(bad))}."
            )
        if not np.any(given > 0):
            raise InputError(
                "ByHour's share must be above 0 in some slot. Got 0 in all: the clients would "
                "never be present."
            )
        shares = np.where(given > 1 - _SMALLEST, 1.0, given)
        object.__setattr__(self, "share", tuple(shares.tolist()))
        object.__setattr__(self, "day", check_positive("ByHour's day", self.day))

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0."""
        return _State(self, check_whole("The number of clients", clients), check_seed(seed))

    def long_run(self, clients: int) -> float:
        """The mean of the probabilities over a day."""
        return math.fsum(self.share) / len(self.share)

    def describe(self) -> str:
        """A few words for messages."""
        return (
            f"clients are present with a probability from {min(self.share):.4g} to "
            f"{max(self.share):.4g} in {len(self.share)} slots of {self.day:g} s"
        )


class _State:
    """The clients' random words; who is present in a slot follows from them and the slot."""

    def __init__(self, presence: ByHour, clients: int, seed: int) -> None:
        self._share, self._day = np.array(presence.share), presence.day
        self._always = bool(np.all(self._share == 1))
        self._words = mix(stream_key(seed, "presence"), np.arange(clients))

    def _starts(self, slot: int) -> float:
        """The start of a slot, the same number wherever it is used."""
        day, part = divmod(slot, self._share.size)
        return day * self._day + part * self._day / self._share.size

    def _slot(self, now: float) -> int:
        """The slot that ``now`` is in."""
        now = check_time(0.0, now)
        slot = int(now / self._day * self._share.size)
        while self._starts(slot) > now:
            slot -= 1
        while self._starts(slot + 1) <= now:
            slot += 1
        return slot

    def _present(self, slot: int, words: NDArray[Any]) -> Mask:
        return np.asarray(uniform(mix(words, slot)) < self._share[slot % self._share.size])

    def away(self, now: float) -> Mask:
        """Which clients are away at ``now``."""
        return ~self._present(self._slot(now), self._words)

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """The start of each client's next slot without it; ``now`` for those that are away."""
        found = np.full(len(clients), np.inf)
        if self._always:
            return found
        slot, words = self._slot(now), self._words[clients]
        left = np.arange(len(clients))
        here = self._present(slot, words)
        found[left[~here]] = now
        left = left[here]
        while left.size:
            slot += 1
            here = self._present(slot, words[left])
            found[left[~here]] = self._starts(slot)
            left = left[here]
        return found

    def next_change(self, now: float) -> float:
        """The start of the next slot."""
        return float("inf") if self._always else self._starts(self._slot(now) + 1)

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """1 for the clients that stay beyond ``until``, 0 for the others."""
        return present_until(self.leaves(clients, now), now, until)

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """Do nothing: a job does not change when a client is present."""

    def save(self) -> Saved:
        """Nothing: the state follows from the seed and the time."""
        return {}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to restore."""
