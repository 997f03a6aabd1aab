"""Clients that are present in listed windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole
from cafe.latency.base import Floats, to_floats
from cafe.presence.base import ClientNumbers, Mask, PresenceState, Saved
from cafe.presence.changes_ahead import Changes, collect_changes
from cafe.presence.parameters import check_time, identify_parameter, present_until
from cafe.randomness import check_seed


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Each client is present in the windows that a trace lists for it.

    Every client of the federation needs at least one window. A window that starts where another
    window of the same client ends continues it.

    Attributes:
        windows: rows of client (a number from 0), from and to. A client is present at ``from`` and
            away at ``to``. The rows may be in any order; they are stored sorted.
        repeat: the period after which the windows repeat; if None, each client is away after its
            last window.

    Example:
        >>> from cafe.presence import Trace
        >>> Trace([[0, 0.0, 10.0], [1, 5.0, 20.0]]).long_run(clients=2)
        array([0.5 , 0.75])
    """

    windows: Sequence[Sequence[float]] | Floats
    repeat: float | None = None

    def __post_init__(self) -> None:
        rows = to_floats(self.windows)
        if rows is None or rows.ndim != 2 or rows.shape[1] != 3 or not len(rows):
            raise InputError(
                "A trace's windows must be rows of three numbers: client, from, to, such as "
                f"[[0, 0.0, 10.0]]. Got {self.windows!r}."
            )
        if self.repeat is not None:
            object.__setattr__(self, "repeat", check_positive("A trace's repeat", self.repeat))
        found = find_fault(rows, self.repeat)
        if found is not None:
            row, message, _ = found
            raise InputError(f"Row {row} of a trace's windows: {message}")
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))] + 0.0  # -0 becomes 0
        rows.setflags(write=False)
        object.__setattr__(self, "windows", rows)

    def begin(self, clients: int, seed: int) -> PresenceState:
        """The state at time 0; it does not depend on the seed."""
        check_seed(seed)
        self._check(check_whole("The number of clients", clients))
        return _State(_merged(self._rows), self.repeat, clients)

    def long_run(self, clients: int) -> Floats:
        """The share of the period in each client's windows.

        Without a period it is the share of the time from 0 to the end of the last window of all
        clients.
        """
        self._check(clients)
        rows = self._rows
        span = rows[:, 2].max() if self.repeat is None else self.repeat
        lengths = np.bincount(_clients(rows), rows[:, 2] - rows[:, 1], clients)
        return np.minimum(lengths / span, 1.0)

    def describe(self) -> str:
        """A few words for messages."""
        again = "" if self.repeat is None else f" that repeats every {self.repeat:g} s"
        count = len(self._rows)
        return f"a trace of {count:,} window{'s' * (count > 1)}{again}"

    def _check(self, clients: int) -> None:
        known = _clients(self._rows)
        if known[-1] >= clients:
            raise InputError(
                f"A trace's clients must be numbers from 0 to {clients - 1}, as the federation has "
                f"{clients} clients. Got {known[-1]}: remove its rows or add clients."
            )
        missing = np.bincount(known, minlength=clients) == 0
        if missing.any():
            raise InputError(
                f"A trace must have at least one window for each of the {clients} clients. "
                f"Client {int(np.argmax(missing))} has none and would never be present: "
                "add a window, or leave the client out of the federation."
            )

    @property
    def _rows(self) -> Floats:
        return np.asarray(self.windows)

    def __repr__(self) -> str:
        rows = self._rows
        shown = repr(rows.tolist()) if len(rows) <= 3 else identify_parameter(rows)
        return f"Trace({shown}, repeat={self.repeat!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def find_fault(rows: Floats, repeat: float | None) -> tuple[int, str, int | None] | None:
    """The first invalid row: its position, the message, and the row it contradicts, if any."""
    client, start, end = rows.T
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        return int(np.argmax(bad)), "client, from and to must be finite numbers.", None
    bad = (client != np.floor(client)) | (client < 0) | (client > 2**53)
    if bad.any():
        row = int(np.argmax(bad))
        return row, f"client must be a whole number from 0 up. Got {client[row]:g}.", None
    if (start < 0).any():
        row = int(np.argmax(start < 0))
        return row, f"from must not be negative. Got {start[row]:g}: time begins at 0.", None
    if (end <= start).any():
        row = int(np.argmax(end <= start))
        what = f"to must be later than from. Got {start[row]:g} to {end[row]:g}."
        return row, what, None
    if repeat is not None and (end > repeat).any():
        row = int(np.argmax(end > repeat))
        what = f"to must be at most the period, {repeat:g}. Got {end[row]:g}."
        return row, what, None
    order = np.lexsort((start, client))
    before, after = order[:-1], order[1:]
    overlap = (client[before] == client[after]) & (start[after] < end[before])
    if overlap.any():
        at = int(np.argmax(overlap))
        first, row = int(before[at]), int(after[at])
        what = (
            f"the windows of a client must not overlap. Client {client[row]:g} has "
            f"{start[first]:g} to {end[first]:g} and {start[row]:g} to {end[row]:g}: join them."
        )
        return row, what, first
    return None


def _clients(rows: Floats) -> ClientNumbers:
    return np.asarray(rows[:, 0], dtype=np.intp)


def _merged(rows: Floats) -> Floats:
    """The sorted rows, with windows of a client that touch joined into one."""
    continues = (rows[1:, 0] == rows[:-1, 0]) & (rows[1:, 1] == rows[:-1, 2])
    merged: Floats = rows[np.concatenate([[True], ~continues])]
    merged[:, 2] = rows[np.concatenate([~continues, [True]]), 2]
    return merged


class _State:
    """The windows of one lap in the order of their starts, and the end of each client's last one.

    A lap is one period of the trace; without a period there is one endless lap. Absolute times are
    ``lap * repeat + time`` in floating point, and a window that ends with the period ends at 0 of
    the next lap. So all methods agree exactly on every time.
    """

    def __init__(self, rows: Floats, repeat: float | None, clients: int) -> None:
        rows = rows[np.argsort(rows[:, 1], kind="stable")]
        self._repeat, self._now = repeat, 0.0
        self._client, self._from, self._to = _clients(rows), rows[:, 1], rows[:, 2].copy()
        self._ends = np.zeros(len(rows), dtype=np.int64)  # in how many laps each window ends
        edges = [self._from, self._to]
        if repeat is not None:
            edges = self._wrap(repeat, clients)
        self._edges = np.unique(np.concatenate(edges))
        self._until = np.full(clients, -np.inf)
        self._begin_lap(0)

    def _wrap(self, repeat: float, clients: int) -> list[Floats]:
        """Join windows at the period's end to those at its start; return the times of changes."""
        last = self._to == repeat
        first = self._from == 0
        resumed = np.full(clients, np.nan)  # the end of each client's window that starts at 0
        resumed[self._client[first]] = self._to[first]
        goes_on = last & ~np.isnan(resumed[self._client])
        continued = first & np.isin(self._client, self._client[goes_on])
        edges = [self._from[~continued], self._to[~last], np.zeros(int((last & ~goes_on).any()))]
        always = goes_on & first
        self._to[last] = 0.0
        self._to[goes_on] = resumed[self._client[goes_on]]
        self._to[always] = np.inf
        self._ends[last] = 1
        return edges

    def away(self, now: float) -> Mask:
        """Which clients are away at ``now``."""
        self._advance(now)
        return np.asarray(self._until <= now)

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        """The end of each client's window; ``now`` for those that are away."""
        self._advance(now)
        return np.asarray(np.maximum(self._until[clients], now))

    def next_change(self, now: float) -> float:
        """The earliest start or end of a window after ``now``."""
        self._advance(now)
        if not self._edges.size:
            return float("inf")
        # The shifted times are still sorted, because rounding keeps their order.
        at = int(np.searchsorted(self._lap_edges, now, side="right"))
        if at < self._edges.size:
            return float(self._lap_edges[at])
        if self._repeat is None:
            return float("inf")
        return float((self._lap + 1) * self._repeat + self._edges[0])

    def changes(self, now: float) -> Changes:
        """The changes that are left in this lap."""
        self._advance(now)
        end = np.inf if self._repeat is None else (self._lap + 1) * self._repeat
        return collect_changes(now, end, [self._starts], [self._stops])

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        """1 for the clients whose window lasts beyond ``until``, 0 for the others."""
        return present_until(self.leaves(clients, now), now, until)

    def spend(self, clients: ClientNumbers, now: float) -> None:
        """Do nothing: a job does not change when a client is present."""

    def save(self) -> Saved:
        """Nothing: the state follows from the time."""
        return {}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to restore."""

    def _begin_lap(self, lap: int) -> None:
        base = 0.0 if self._repeat is None else lap * self._repeat
        following = 0.0 if self._repeat is None else (lap + 1) * self._repeat
        self._lap, self._passed = lap, 0
        self._starts = base + self._from
        self._stops = np.where(self._ends == 0, base, following) + self._to
        self._lap_edges = base + self._edges
        self._until[:] = -np.inf

    def _advance(self, now: float) -> None:
        """Enter every window that has started by ``now``."""
        self._now = check_time(self._now, now)
        if self._repeat is not None:
            lap = int(now // self._repeat)
            lap -= lap * self._repeat > now
            lap += (lap + 1) * self._repeat <= now
            if lap != self._lap:
                self._begin_lap(lap)
        passed = int(np.searchsorted(self._starts, now, side="right"))
        entered = slice(self._passed, passed)
        # If a client entered two windows, the later one is assigned last and wins.
        self._until[self._client[entered]] = self._stops[entered]
        self._passed = passed
