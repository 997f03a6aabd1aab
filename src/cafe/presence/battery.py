"""Clients that spend energy on every job and harvest it at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole
from cafe.latency.base import Floats
from cafe.presence.base import ClientNumbers, Mask, PerClient, PresenceState, Saved
from cafe.presence.parameters import (
    check_per_client,
    check_time,
    expand_to_clients,
    format_mean,
    identify_parameter,
    present_until,
)
from cafe.randomness import check_seed, mix, stream_key, uniform


@dataclass(frozen=True, eq=False, repr=False)
class Battery:
    """A client is present while its battery holds the energy of a job.

    A job costs ``cost`` when it starts, so a job that has started is never interrupted. At the end
    of each slot, at ``slot``, 2 ``slot`` and so on, a client harvests an exponential amount with
    mean ``harvest``. Energy beyond ``capacity`` is lost. All amounts are in one unit of energy, and
    each is one number or one per client.

    Attributes:
        capacity: the energy of a full battery; at least the cost.
        cost: the energy of a job.
        harvest: the mean energy harvested in a slot.
        slot: the length of a slot, in the latency's unit.
        start: the level at time 0; full if left out.

    Example:
        >>> from cafe.presence import Battery
        >>> Battery(capacity=3.0, cost=1.0, harvest=0.5).long_run(clients=10)
        0.5
    """

    capacity: PerClient
    cost: PerClient
    harvest: PerClient
    slot: float = 3600.0
    start: PerClient | None = None

    def __post_init__(self) -> None:
        for name in ("capacity", "cost", "harvest"):
            value = check_per_client(f"Battery's {name}", getattr(self, name))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "slot", check_positive("Battery's slot", self.slot))
        if self.start is not None:
            start = check_per_client("Battery's start", self.start, zero=True)
            object.__setattr__(self, "start", start)
        sizes = {np.size(v) for v in self._values().values() if np.ndim(v)}
        if len(sizes) > 1:
            raise InputError(
                "Battery's lists must all have one length, with one entry per client. "
                f"Got lengths {', '.join(map(str, sorted(sizes)))}."
            )
        if np.any(np.less(self.capacity, self.cost)):
            raise InputError(
                f"Battery's capacity must be at least the cost of a job. Got {self.capacity} and "
                f"{self.cost}: such a client could never start a job."
            )
        if self.start is not None and np.any(np.greater(self.start, self.capacity)):
            raise InputError(
                f"Battery's start must be at most its capacity. Got {self.start} and "
                f"{self.capacity}."
            )

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0."""
        clients = check_whole("The number of clients", clients)
        values = self._values()
        each = {k: expand_to_clients(f"Battery's {k}", v, clients) for k, v in values.items()}
        return _State(each, self.slot, check_seed(seed))

    def long_run(self, clients: int) -> float | Floats:
        """The share of slots in which a client can start a job, if it is invited once per slot.

        It is min(1, harvest / cost), the rate at which the harvest pays for jobs. This is
        approximate: energy that is lost at full capacity makes the true share smaller. If the
        server invites clients less often, they are present more often, and vice versa.
        """
        harvest, cost = self._values()["harvest"], self._values()["cost"]
        if not np.ndim(harvest) and not np.ndim(cost):
            return float(min(1.0, harvest / cost))
        share = expand_to_clients("Battery's harvest", harvest, clients) / expand_to_clients(
            "Battery's cost", cost, clients
        )
        return np.minimum(share, 1.0)

    def describe(self) -> str:
        """A few words for messages."""
        v = self._values()
        return (
            f"a job costs {format_mean(v['cost'])} of a battery of {format_mean(v['capacity'])} "
            f"that harvests {format_mean(v['harvest'])} every {self.slot:g} s; the share counts "
            "one job per such slot"
        )

    def _values(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "capacity": self.capacity,
            "cost": self.cost,
            "harvest": self.harvest,
        }
        return found | {"start": self.capacity if self.start is None else self.start}

    def __repr__(self) -> str:
        values = {**self._values(), "start": self.start}
        words = ", ".join(f"{name}={identify_parameter(value)}" for name, value in values.items())
        return f"Battery({words}, slot={self.slot!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Battery) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class _State:
    """Each client's level of energy, and the number of slots that have ended."""

    def __init__(self, each: Mapping[str, Floats], slot: float, seed: int) -> None:
        self._capacity, self._cost, self._harvest = each["capacity"], each["cost"], each["harvest"]
        self._level = each["start"].copy()
        self._slot, self._ended, self._now = slot, 0, 0.0
        self._words = mix(stream_key(seed, "presence"), np.arange(len(self._level)))

    def away(self, now: float) -> Mask:
        """The clients whose level is below the cost of a job."""
        self._advance(now)
        return np.asarray(self._level < self._cost)

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """Infinite, because a job is paid for when it starts; ``now`` for clients that are away."""
        self._advance(now)
        return np.where(self._level[clients] < self._cost[clients], now, np.inf)

    def next_change(self, now: float) -> float:
        """The end of the current slot; infinite if no client is away."""
        return (self._ended + 1) * self._slot if self.away(now).any() else float("inf")

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """1 for clients that are present now, because they stay until they start a job, else 0."""
        return present_until(self.leaves(clients, now), now, until)

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """Subtract the cost of a job from the level of these clients, each listed once."""
        self._advance(now)
        short = self._level[clients] < self._cost[clients]
        if short.any():
            client = int(np.asarray(clients)[short][0])
            raise InputError(
                f"Client {client} cannot start a job at {now:g}: its battery holds "
                f"{self._level[client]:g} and a job costs {self._cost[client]:g}. "
                "Start jobs only for clients that are present."
            )
        self._level[clients] -= self._cost[clients]

    def save(self) -> Saved:
        """The levels, the number of slots that have ended, and the time."""
        return {
            "level": self._level.copy(),
            "ended": np.array(self._ended, dtype=np.int64),
            "now": np.array(self._now),
        }

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what :meth:`save` returned."""
        shapes = {name: np.shape(value) for name, value in saved.items()}
        if shapes != {"level": self._level.shape, "ended": (), "now": ()}:
            raise InputError(
                f"A saved battery state must have the levels of {len(self._level)} clients. "
                f"Got arrays of shapes {shapes}: it belongs to another federation."
            )
        self._level = np.array(saved["level"], dtype=float)
        self._ended, self._now = int(saved["ended"]), float(saved["now"])

    def _advance(self, now: float) -> None:
        """Harvest at the end of each slot until ``now``; full batteries are skipped."""
        self._now = check_time(self._now, now)
        ended = int(now // self._slot)
        ended -= ended * self._slot > now
        ended += (ended + 1) * self._slot <= now
        if ended == self._ended:
            return
        low = np.flatnonzero(self._level < self._capacity)
        for slot in range(self._ended, ended):
            if not low.size:
                break
            draw = uniform(mix(self._words[low], slot))
            level = self._level[low] - np.log1p(-draw) * self._harvest[low]
            self._level[low] = np.minimum(level, self._capacity[low])
            low = low[level < self._capacity[low]]
        self._ended = ended
