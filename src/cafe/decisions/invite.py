"""Whom to invite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError, check_whole, is_finite_number
from cafe.federation import Indices
from cafe.rounds.jobs import ONE_STEP, Invitation, Work
from cafe.rounds.ledger import Ledger

_NOBODY = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Everyone:
    """All clients that are idle, as in the paper. With a local model they go on from it."""

    work: Work = ONE_STEP

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """Everybody who is idle."""
        return _invitation(ledger, ledger.idle, self.work)


@dataclass(frozen=True)
class Sample:
    """So many idle clients, uniformly without replacement; all of them where there are fewer."""

    cohort: int
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        object.__setattr__(self, "cohort", check_whole("A cohort", self.cohort))

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """A uniform draw."""
        idle = ledger.idle
        if len(idle) > self.cohort:
            idle = np.sort(rng.choice(idle, self.cohort, replace=False, shuffle=False))
        return _invitation(ledger, idle, self.work)


@dataclass(frozen=True)
class Fraction:
    """A fraction of all clients, at least one, uniformly without replacement (FedAvg)."""

    fraction: float
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        if not is_finite_number(self.fraction) or not 0 < self.fraction <= 1:
            raise InputError(
                f"The fraction of clients must be above 0 and at most 1. Got {self.fraction!r}."
            )

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """A uniform draw."""
        cohort = max(round(self.fraction * ledger.clients), 1)
        return Sample(cohort, self.work)(ledger, rng)


@dataclass(frozen=True)
class Refill:
    """As many idle clients, drawn uniformly, as are missing from so many at work.

    As ``invite`` it fills up when a round opens. :meth:`now` fills up while a round is open.
    The cost of a draw does not depend on the number of clients, while most of them are idle.
    """

    concurrency: int
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        object.__setattr__(self, "concurrency", check_whole("concurrency", self.concurrency))

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """For ``invite``: the missing clients; none where enough are at work."""
        return _invitation(ledger, self._draw(ledger, rng), self.work)

    def now(self, ledger: Ledger) -> Invitation | None:
        """For ``close``: the missing clients; None where enough are at work or nobody is idle."""
        clients = self._draw(ledger, None)
        return _invitation(ledger, clients, self.work) if len(clients) else None

    def _draw(self, ledger: Ledger, rng: np.random.Generator | None) -> Indices:
        missing, idle = self.concurrency - ledger.working, ledger.clients - ledger.working
        if missing <= 0:
            return _NOBODY
        blocked = ledger.busy
        if ledger.absent:
            blocked = blocked | ledger.away
            idle = ledger.clients - int(np.count_nonzero(blocked))
        count = min(missing, idle)
        if not count:
            return _NOBODY
        rng = ledger.rng if rng is None else rng
        if 4 * count > idle or 4 * idle < ledger.clients:
            some = np.flatnonzero(~blocked)
            return np.sort(rng.choice(some, count, replace=False, shuffle=False))
        chosen: set[int] = set()
        while len(chosen) < count:  # clients at work, or drawn twice, are drawn again
            for client in rng.integers(ledger.clients, size=2 * (count - len(chosen))).tolist():
                if len(chosen) < count and not blocked[client]:
                    chosen.add(client)
        return np.array(sorted(chosen), dtype=np.intp)


def _invitation(ledger: Ledger, clients: Indices, work: Work) -> Invitation:
    """Who has a local model goes on from it."""
    local = ledger.local[clients] if ledger.local.any() else None
    return Invitation(clients, local, work)
