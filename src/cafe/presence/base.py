"""The protocol of a presence: the times at which each client can take part.

A presence is an immutable description. :meth:`Presence.begin` creates a state, which a run queries
as its time advances. Windows are half-open: a client is present at the start of a window and away
at its end.
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
    """Which clients are away at a time. Times are in the latency's unit and must not decrease."""

    def away(self, now: float) -> Mask:
        """For each client, whether it is away at ``now``. The caller may keep the array."""

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """When each of these clients leaves next: infinite if never, ``now`` if it is away."""

    def next_change(self, now: float) -> float:
        """The earliest time after ``now`` at which a client may come or leave; infinite if none."""

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """The probability that each of these clients is present from ``now`` through ``until``.

        It is 0 or 1 if the presence is known in advance, and 0 for a client that is away now.
        """

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """Record that these clients, each listed once, start a job now."""

    def save(self) -> Saved:
        """What does not follow from the seed and the time, as arrays for a checkpoint."""

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what :meth:`save` returned."""


@runtime_checkable
class Presence(Protocol):
    """When clients are present. ``repr`` identifies a presence completely."""

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0; it depends only on the seed and the number of clients."""

    def long_run(self, clients: int) -> float | Floats:
        """The long-run share of time in which a client is present; one number or one per client."""

    def describe(self) -> str:
        """A few words for messages."""
