"""The ledger: what a server knows when it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.randomness import Stream
from cafe.rounds.jobs import Mask, Whole

UNKNOWN = -1  # examples of a client that has not said yet how many it holds


class ModelScore(NamedTuple):
    """How good a version of the model was: mean loss, share of right answers, and which version."""

    loss: float
    accuracy: float | None
    version: int


@dataclass(eq=False)
class LedgerColumns:
    """The ledger's arrays, an entry per client. Their owner writes them; policies never do."""

    examples: Whole
    last_start: Floats
    last_round: Whole
    merged: Whole
    busy: Mask
    away: Mask
    local: Mask

    @classmethod
    def new(cls, examples: Whole) -> LedgerColumns:
        """Of clients that hold so many examples each, before the first round."""
        n = len(examples)
        return cls(
            examples=np.array(examples, dtype=np.int64),
            last_start=np.zeros(n),
            last_round=np.full(n, -1, dtype=np.int64),
            merged=np.zeros(n, dtype=np.int64),
            busy=np.zeros(n, dtype=bool),
            away=np.zeros(n, dtype=bool),
            local=np.zeros(n, dtype=bool),
        )


class Ledger:
    """What a server knows: the clock, the model's version, and when each client was last heard.

    Policies read it and never write to it: its arrays are read-only.

    Attributes:
        clients: how many there are.
        examples: how many examples each client holds; ``UNKNOWN``, -1, for a real client that has
            not said so yet.
        now: the time.
        opened: when the present round began.
        round: its number, from 0, failed rounds included.
        version: how many updates the model has had.
        invitations: how many invitations there have been; a round that begins has one, and its
            ``close`` may add others.
        last_start: when each client's last merged job was broadcast; 0 before its first.
        last_round: in which round each client was last merged; -1 before its first.
        merged: how often each client was merged.
        busy: who has a job running. Who has just been invited is busy; who has reported is not.
        away: who could not be reached when the round opened. Who has come or gone since is seen
            at the next opening, by a live server as in a simulation.
        local: who has a local model to go on from.
        working: how many jobs are running.
        absent: how many clients are away.
        state: what the policy's ``observe`` returned last.
        score: how good the model was when it was last evaluated, for a policy that needs scores.
        rng: random numbers for this decision, and no other. Asked again in the same decision, it
            goes on where it was.
    """

    examples: Whole
    last_start: Floats
    last_round: Whole
    merged: Whole
    away: Mask
    local: Mask

    def __init__(self, columns: LedgerColumns) -> None:
        self.now = 0.0
        self.opened = 0.0
        self.round = 0
        self.version = 0
        self.invitations = 0
        self.working = 0
        self.absent = 0
        self.state: Any = None
        self.score: ModelScore | None = None
        self.forecasts: Callable[[Indices, float], Floats] | None = None
        self._stream: Stream | None = None
        self._index = 0
        self._rng: np.random.Generator | None = None
        self._changes: list[tuple[Indices, Mask | None, bool]] = []
        self.attach(columns)

    @classmethod
    def new(cls, examples: Whole) -> Ledger:
        """The ledger of clients that hold so many examples, before the first round."""
        return cls(LedgerColumns.new(examples))

    def attach(self, columns: LedgerColumns) -> None:
        """Show these arrays from now on, read-only."""
        self._columns = columns
        self.clients = len(columns.examples)
        self.absent = int(np.count_nonzero(columns.away))
        for field in fields(columns):
            view = getattr(columns, field.name).view()
            view.setflags(write=False)
            vars(self)["_busy" if field.name == "busy" else field.name] = view
        vars(self).pop("_everyone", None)

    def set_away(self, away: Mask) -> None:
        """Note who is away now."""
        self._columns.away[:] = away
        self.absent = int(np.count_nonzero(away))

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers for this decision."""
        if self._rng is None:
            if self._stream is None:
                raise InputError("A ledger has random numbers only where a run asks a decision.")
            self._rng = self._stream.at(self._index)
        return self._rng

    def forecast(self, clients: Indices, until: float) -> Floats:
        """How likely each client is to stay present until a time, for a policy that needs it."""
        if self.forecasts is None:
            raise InputError(
                "A policy sees forecasts of presence only if it says so: give it "
                'needs=frozenset({"forecasts"}).'
            )
        return self.forecasts(clients, until)

    def seed_decision(self, stream: Stream, index: int) -> None:
        """The next decision's random numbers come from here, if it wants any."""
        self._stream, self._index, self._rng = stream, index, None

    @property
    def busy(self) -> Mask:
        """Who has a job running."""
        if self._changes:
            busy = self._columns.busy
            for clients, mask, value in self._changes:
                busy[clients if mask is None else clients[mask]] = value
            self._changes.clear()
        busy_now: Mask = vars(self)["_busy"]
        return busy_now

    def mark(self, clients: Indices, mask: Mask | None, busy: bool) -> None:
        """Note that clients (those of the mask) are busy or not; worked out when asked for."""
        self._changes.append((clients, mask, busy))

    def forget_marks(self) -> None:
        """Drop what :meth:`mark` has noted, where ``busy`` is about to be written anew."""
        self._changes.clear()

    @property
    def idle(self) -> Indices:
        """Who is there and has no job running, in rising order."""
        if not self.working and not self.absent:
            return self._everyone
        return np.flatnonzero(~(self.busy | self.away))

    @cached_property
    def _everyone(self) -> Indices:
        everyone = np.arange(self.clients)
        everyone.setflags(write=False)
        return everyone

    def age(self, clients: Indices) -> Floats:
        """Time since each client's last merged job was broadcast; since 0 before its first.

        Just before a merge it is the age that is about to end: (R + 1) T in the paper's rounds,
        where R is :meth:`rounds_since`. After it every merged client's age is T (Sec. 4.3).
        """
        return self.now - self.last_start[clients]

    def rounds_since(self, clients: Indices) -> Whole:
        """Rounds since each client was last merged, this one included: at least 1.

        A client that is merged with probability r in every round has a mean of 1 / r.
        """
        return self.round - self.last_round[clients]
