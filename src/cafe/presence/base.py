"""What a presence is: the times at which each client can take part.

A presence is a frozen description. :meth:`Presence.begin` makes a state from it, which a run asks
who is away as its time goes on. A client is present from the start of a window and away at its end:
windows are half-open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cafe.latency.base import Floats

Mask = NDArray[np.bool_]
ClientNumbers = NDArray[np.intp]
Saved = dict[str, NDArray[Any]]
PerClient = float | Sequence[float] | Floats


class PresenceState(Protocol):
    """Who is away as time goes on. Times are in the latency's unit and never decrease."""

    def away(self, now: float) -> Mask:
        """Which clients are away at ``now``, for all clients. The caller may keep the array."""

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """When each of these clients next leaves: infinite if never, ``now`` if it is away."""

    def next_change(self, now: float) -> float:
        """The earliest time after ``now`` at which a presence may change; infinite if never."""

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """The probability that each of these clients is present from ``now`` through ``until``.

        It is 0 or 1 where the presence is known in advance, and 0 for a client that is away now.
        """

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """These clients, each named once, start a job now."""

    def save(self) -> Saved:
        """What is not a function of the seed and the time, for a checkpoint."""

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what :meth:`save` returned."""


@runtime_checkable
class Presence(Protocol):
    """When clients are present. ``repr`` identifies a presence completely."""

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0, a function of the seed."""

    def long_run(self, clients: int) -> float | Floats:
        """The long-run share of time that a client is present; one number or one per client."""

    def describe(self) -> str:
        """A few words for messages."""
