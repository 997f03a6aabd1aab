"""The ledger: what a server knows when it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.randomness import Stream
from cafe.rounds.jobs import Mask, Whole

UNKNOWN = -1  # number of examples of a client that has not reported it yet


class ModelScore(NamedTuple):
    """The score of a version of the model: mean loss, accuracy (if it has classes), version."""

    loss: float
    accuracy: float | None
    version: int


@dataclass(eq=False)
class LedgerColumns:
    """The ledger's arrays, with an entry per client. The run writes them; policies only read."""

    examples: Whole
    last_start: Floats
    last_round: Whole
    merged: Whole
    busy: Mask
    away: Mask
    local: Mask

    @classmethod
    def new(cls, examples: Whole) -> LedgerColumns:
        """Columns before the first round, of clients that hold these numbers of examples."""
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
    """What a server knows: the time, the model's version, and each client's last merged job.

    Policies read it and never write to it: its arrays are read-only.

    Attributes:
        clients: number of clients.
        examples: number of examples that each client holds; ``UNKNOWN``, -1, for a real client
            that has not reported it yet.
        now: current time.
        opened: time at which the current round opened.
        round: number of the current round, from 0, failed rounds included.
        version: number of updates of the model.
        invitations: number of invitations so far. Each round has one, and its ``close`` may add
            more.
        last_start: time of the broadcast of each client's last merged job; 0 before its first.
        last_round: round in which each client was last merged; -1 before its first.
        merged: number of times that each client was merged.
        busy: mask of clients with a running job: those that were invited and have not reported.
        away: mask of clients that could not be reached when the round opened. Clients that come or
            go later are noticed when the next round opens, in live runs and in simulations.
        local: mask of clients that have a local model to continue from.
        working: number of running jobs.
        absent: number of clients that are away.
        state: what the policy's ``observe`` returned last; None before.
        memory: the array that a ``merge`` returned last as ``memory``; None before. ``carry`` and
            ``observe`` see that of their own round's merge.
        owner: the name of the policy that left ``state`` and ``memory``; "" before the first round.
        control: the state that the run's controller returned last, which only it may use; None
            before.
        update_size: the number of parameters in an update, if a policy of this run may need to see
            updates; None if there is no task, or secure aggregation hides them.
        score: the last :class:`~cafe.rounds.ledger.ModelScore`, for a policy that needs scores.
        rng: random generator of the current decision. Every decision has its own.
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
        self.memory: NDArray[Any] | None = None
        self.owner = ""
        self.control: Any = None
        self.update_size: int | None = None
        self.score: ModelScore | None = None
        self.forecasts: Callable[[Indices, float], Floats] | None = None
        self._stream: Stream | None = None
        self._index = 0
        self._rng: np.random.Generator | None = None
        self._changes: list[tuple[Indices, Mask | None, bool]] = []
        self._away_busy: int | None = None  # how many clients are away and busy, once it is asked
        self.attach(columns)

    @classmethod
    def new(cls, examples: Whole) -> Ledger:
        """The ledger before the first round, of clients that hold these numbers of examples."""
        return cls(LedgerColumns.new(examples))

    def attach(self, columns: LedgerColumns) -> None:
        """Use these arrays from now on; policies see read-only views of them."""
        self._columns = columns
        self._away_busy = None
        self.clients = len(columns.examples)
        self.absent = int(np.count_nonzero(columns.away))
        for field in fields(columns):
            view = getattr(columns, field.name).view()
            view.setflags(write=False)
            vars(self)["_busy" if field.name == "busy" else field.name] = view
        vars(self).pop("_everyone", None)

    def remember(self, memory: NDArray[Any], rows: Indices | None) -> None:
        """Set the memory, or only some of its rows."""
        if rows is not None:
            changed, memory = memory, cast(NDArray[Any], self.memory)
            if not memory.flags.owndata:
                memory = memory.copy()
            memory.setflags(write=True)
            memory[rows] = changed
        memory.setflags(write=False)
        self.memory = memory

    def hand_over(self, policy: str) -> bool:
        """Make a policy the owner, and clear ``state`` and ``memory`` if another one left them.

        Args:
            policy: the name of the policy.

        Returns:
            Whether another policy was the owner.
        """
        before, self.owner = self.owner, policy
        if before in ("", policy):
            return False
        self.state = self.memory = None
        return True

    def set_away(self, away: Mask) -> None:
        """Set which clients are away."""
        self._columns.away[:] = away
        self._away_busy = None
        self.absent = int(np.count_nonzero(away))

    @property
    def rng(self) -> np.random.Generator:
        """Random generator of the current decision."""
        if self._rng is None:
            if self._stream is None:
                raise InputError("ledger.rng can be used only inside a decision of a run.")
            self._rng = self._stream.at(self._index)
        return self._rng

    def forecast(self, clients: Indices, until: float) -> Floats:
        """The probability that each client stays present until a time; 0 for clients that are away.

        In simulations it follows from the federation's presence. On real clients it is estimated
        from who was present when the server looked.

        Raises:
            InputError: if the policy does not need "forecasts".
        """
        if self.forecasts is None:
            raise InputError(
                "ledger.forecast can be used only by a policy that declares it: make it with "
                'Policy(..., needs=frozenset({"forecasts"})).'
            )
        return self.forecasts(clients, until)

    def seed_decision(self, stream: Stream, index: int) -> None:
        """Set where the next decision's random numbers come from: an index of a stream."""
        self._stream, self._index, self._rng = stream, index, None

    @property
    def busy(self) -> Mask:
        """Mask of clients with a running job."""
        if self._changes:
            busy = self._columns.busy
            for clients, mask, value in self._changes:
                some = clients if mask is None else clients[mask]
                if self._away_busy is not None:
                    some = np.unique(some)
                    changed = some[busy[some] != value]
                    away = int(np.count_nonzero(self._columns.away[changed]))
                    self._away_busy += away if value else -away
                busy[some] = value
            self._changes.clear()
        busy_now: Mask = vars(self)["_busy"]
        return busy_now

    def mark(self, clients: Indices, mask: Mask | None, busy: bool) -> None:
        """Mark clients, or those in ``mask``, as busy or idle when ``busy`` is next read."""
        self._changes.append((clients, mask, busy))

    def forget_marks(self) -> None:
        """Discard the marks that :attr:`busy` has not applied, before its array is overwritten."""
        self._changes.clear()
        self._away_busy = None

    @property
    def idle_count(self) -> int:
        """The number of idle clients. In an open round it is counted once, then kept up to date."""
        if not self.absent:
            return self.clients - self.working
        busy = self.busy
        if self._away_busy is None:
            self._away_busy = int(np.count_nonzero(busy & self.away))
        return self.clients - self.working - self.absent + self._away_busy

    @property
    def idle(self) -> Indices:
        """The clients that are present and have no running job, in rising order."""
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

        In the paper's rounds, just before a merge it is (R + 1) T, where R is
        :meth:`rounds_since`. After the merge every merged client's age is T (Sec. 4.3).
        """
        return self.now - self.last_start[clients]

    def rounds_since(self, clients: Indices) -> Whole:
        """Rounds since each client was last merged, this one included: at least 1.

        A client that is merged with probability r in every round has a mean of 1 / r.
        """
        return self.round - self.last_round[clients]
