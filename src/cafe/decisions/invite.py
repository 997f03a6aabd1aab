"""Whom to invite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError, is_finite_number, whole
from cafe.federation import Indices
from cafe.rounds.jobs import ONE_STEP, Invitation, Work
from cafe.rounds.ledger import Ledger


@dataclass(frozen=True)
class Everyone:
    """All clients that are idle, as in the paper. With a local model they go on from it."""

    work: Work = ONE_STEP

    def size(self, clients: int) -> int:
        """How many it invites at most."""
        return clients

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """Everybody who is idle."""
        return _invitation(ledger, ledger.idle, self.work)


@dataclass(frozen=True)
class Sample:
    """So many idle clients, uniformly without replacement; all of them where there are fewer."""

    cohort: int
    work: Work = ONE_STEP

    def __post_init__(self) -> None:
        object.__setattr__(self, "cohort", whole("A cohort", self.cohort))

    def size(self, clients: int) -> int:
        """How many it invites at most; a cohort larger than the federation is refused."""
        if self.cohort > clients:
            raise InputError(
                f"A cohort must be at most the number of clients ({clients}). "
                f"Got {self.cohort}: invite fewer."
            )
        return self.cohort

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

    def size(self, clients: int) -> int:
        """How many it invites at most."""
        return max(round(self.fraction * clients), 1)

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """A uniform draw."""
        return Sample(self.size(ledger.clients), self.work)(ledger, rng)


def _invitation(ledger: Ledger, clients: Indices, work: Work) -> Invitation:
    """Who has a local model goes on from it."""
    local = ledger.local[clients] if ledger.local.any() else None
    return Invitation(clients, local, work)
