"""The ledger: what a server knows when it decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.jobs import Mask, Whole


@dataclass(eq=False)
class Ledger:
    """What a server knows: the clock, the model's version, and when each client was last heard.

    Policies read it and never write to it.

    Attributes:
        clients: how many there are.
        examples: how many examples each client holds.
        now: the time.
        opened: when the present round began.
        round: its number, from 0, failed rounds included.
        version: how many updates the model has had.
        last_start: when each client's last merged job was broadcast; 0 before its first.
        last_round: in which round each client was last merged; -1 before its first.
        merged: how often each client was merged.
        busy: who has a job running.
        away: who cannot be reached now; nobody in a simulation, where an absent client is invited
            like any other and never begins.
        local: who has a local model to go on from.
        state: what the policy's ``observe`` returned last.
    """

    clients: int
    examples: Whole
    now: float = 0.0
    opened: float = 0.0
    round: int = 0
    version: int = 0
    last_start: Floats = field(default_factory=lambda: np.empty(0))
    last_round: Whole = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    merged: Whole = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    busy: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    away: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    local: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    state: Any = None

    @classmethod
    def new(cls, examples: Whole) -> Ledger:
        """The ledger of clients that hold so many examples, before the first round."""
        n = len(examples)
        return cls(
            clients=n,
            examples=examples,
            last_start=np.zeros(n),
            last_round=np.full(n, -1, dtype=np.int64),
            merged=np.zeros(n, dtype=np.int64),
            busy=np.zeros(n, dtype=bool),
            away=np.zeros(n, dtype=bool),
            local=np.zeros(n, dtype=bool),
        )

    @property
    def idle(self) -> Indices:
        """Who is there and has no job running, in rising order."""
        if self.busy.any() or self.away.any():
            return np.flatnonzero(~(self.busy | self.away))
        return self._everyone

    @cached_property
    def _everyone(self) -> Indices:
        everyone = np.arange(self.clients)
        everyone.setflags(write=False)
        return everyone

    def admit(self, count: int) -> None:
        """Let so many new clients in, who hold one example each for all that is known.

        Their age begins now.
        """
        new = Ledger.new(np.ones(count, dtype=np.int64))
        new.last_start += self.now
        for name in ("examples", "last_start", "last_round", "merged", "busy", "away", "local"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(new, name)]))
        self.clients += count
        vars(self).pop("_everyone", None)

    def checked(self, invited: Indices) -> Indices:
        """The clients of an invitation, if they can be invited now."""
        clients = np.asarray(invited)
        rising = clients.ndim == 1 and bool((clients[1:] > clients[:-1]).all())
        if len(clients) and (
            clients.dtype.kind not in "iu"
            or not rising
            or clients[0] < 0
            or clients[-1] >= self.clients
        ):
            raise InputError(
                f"An invitation names clients from 0 to {self.clients - 1}, each once, in rising "
                f"order. Got {clients!r}."
            )
        clients = clients.astype(np.intp, copy=False)
        if self.busy[clients].any():
            busy = clients[self.busy[clients]]
            raise InputError(f"Client {busy[0]} was invited while its last job still runs.")
        return clients

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


@dataclass(frozen=True)
class Waiting:
    """An open round, as it stands when ``close`` is asked.

    Attributes:
        reports: how many have reported in this round.
        invited: how many jobs were started in it.
        outstanding: how many jobs, of this round or older, have not reported.
    """

    reports: int
    invited: int
    outstanding: int
