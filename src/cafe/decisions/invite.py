"""Decisions for ``invite``: which clients start a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError, check_positive, check_type, check_whole
from cafe.federation import Indices
from cafe.rounds.jobs import ONE_STEP, Invitation, Work
from cafe.rounds.ledger import Ledger

_NO_CLIENTS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Everyone:
    """Invite all idle clients, as in the paper. Those with a local model continue from it."""

    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        _check_work(self.work)

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return _invitation(ledger, ledger.idle, self.work)


@dataclass(frozen=True)
class Sample:
    """Invite a random cohort of idle clients, drawn uniformly; all of them if there are fewer."""

    cohort: int
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        object.__setattr__(self, "cohort", check_whole("A cohort", self.cohort))
        _check_work(self.work)

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        idle = ledger.idle
        if len(idle) > self.cohort:
            idle = np.sort(rng.choice(idle, self.cohort, replace=False, shuffle=False))
        return _invitation(ledger, idle, self.work)


@dataclass(frozen=True)
class Fraction:
    """Invite a random fraction of all clients, at least one, drawn uniformly (FedAvg)."""

    fraction: float
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        if check_positive("The fraction of clients", self.fraction) > 1:
            raise InputError(f"The fraction of clients must be at most 1. Got {self.fraction!r}.")
        _check_work(self.work)

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        cohort = max(round(self.fraction * ledger.clients), 1)
        return Sample(cohort, self.work)(ledger, rng)


@dataclass(frozen=True)
class Refill:
    """Invite random idle clients until ``concurrency`` clients are busy.

    As ``invite`` it is called when a round opens. A ``close`` can call :meth:`now` while a round is
    open. While most clients are idle, the cost of a draw does not depend on their number.
    """

    concurrency: int
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        object.__setattr__(self, "concurrency", check_whole("concurrency", self.concurrency))
        _check_work(self.work)

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """For ``invite``: the clients that are missing; none if enough are busy."""
        return _invitation(ledger, self._draw(ledger, rng), self.work)

    def now(self, ledger: Ledger) -> Invitation | None:
        """For ``close``: the clients that are missing; None if enough are busy or none is idle."""
        clients = self._draw(ledger, None)
        return _invitation(ledger, clients, self.work) if len(clients) else None

    def _draw(self, ledger: Ledger, rng: np.random.Generator | None) -> Indices:
        missing = self.concurrency - ledger.working
        if missing <= 0:
            return _NO_CLIENTS
        idle, busy, away = ledger.idle_count, ledger.busy, ledger.away
        count = min(missing, idle)
        if not count:
            return _NO_CLIENTS
        rng = ledger.rng if rng is None else rng
        if 4 * count > idle or 4 * idle < ledger.clients:
            some = np.flatnonzero(~(busy | away))
            return np.sort(rng.choice(some, count, replace=False, shuffle=False))
        chosen: set[int] = set()
        while len(chosen) < count:  # draw again for clients that are busy or already chosen
            for client in rng.integers(ledger.clients, size=2 * (count - len(chosen))).tolist():
                if len(chosen) < count and not busy[client] and not away[client]:
                    chosen.add(client)
        return np.array(sorted(chosen), dtype=np.intp)


def _check_work(work: Work) -> None:
    check_type("work", work, Work, "what a client does, such as cafe.rounds.Work(steps=5)")


def _invitation(ledger: Ledger, clients: Indices, work: Work) -> Invitation:
    """An invitation in which clients with a local model continue from it."""
    local = ledger.local[clients] if ledger.local.any() else None
    return Invitation(clients, local, work)
