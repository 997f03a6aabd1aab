"""The presence of some of a federation's clients, such as those of one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.latency.base import Floats
from cafe.presence.base import ClientNumbers, Mask, Presence, PresenceState, Saved
from cafe.presence.parameters import identify_parameter


@dataclass(frozen=True, eq=False)
class PartOfPresence:
    """The presence of some clients, which are numbered from 0 in the given order.

    Attributes:
        whole: the presence of the whole federation.
        total: the number of its clients.
        clients: the clients of the part.
    """

    whole: Presence
    total: int
    clients: ClientNumbers

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0."""
        return _PartState(self.whole.begin(self.total, seed), self.clients)

    def long_run(self, clients: int) -> float | Floats:
        """The long-run share of time in which each client of the part is present."""
        share = self.whole.long_run(self.total)
        return np.asarray(share)[self.clients] if np.ndim(share) else share

    def describe(self) -> str:
        """A few words for messages."""
        return self.whole.describe()

    def __repr__(self) -> str:
        clients = identify_parameter(self.clients.astype(float))
        return f"PartOfPresence({self.whole!r}, {self.total}, {clients})"


class _PartState:
    """The state of the whole federation, of which only some clients are shown."""

    def __init__(self, state: PresenceState, clients: ClientNumbers) -> None:
        self._state, self._clients = state, clients

    def away(self, now: float) -> Mask:
        return self._state.away(now)[self._clients]

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        return self._state.leaves(self._clients[clients], now)

    def next_change(self, now: float) -> float:
        """The next change in the whole federation, which need not concern the part."""
        return self._state.next_change(now)

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        return self._state.forecast(self._clients[clients], now, until)

    def spend(self, clients: ClientNumbers, now: float) -> None:
        self._state.spend(self._clients[clients], now)

    def save(self) -> Saved:
        return self._state.save()

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        self._state.restore(saved)
