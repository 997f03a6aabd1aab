"""Clients that choose how much they do: a random number of steps for each job."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cafe.decisions.invite import Refill
from cafe.errors import InputError, check_type, check_whole
from cafe.rounds.jobs import Invitation
from cafe.rounds.ledger import Ledger


@dataclass(frozen=True)
class RandomSteps:
    """Invite as :class:`Refill` does; each client takes a random number of steps.

    Attributes:
        refill: chooses the clients. The amount in its work is not used.
        least: the least number of steps.
        most: the largest number of steps. All numbers in between are equally likely.

    Example:
        >>> from cafe.decisions import RandomSteps, Refill
        >>> RandomSteps(Refill(20), least=1, most=5).concurrency
        20
    """

    refill: Refill
    least: int
    most: int

    def __post_init__(self) -> None:
        check_type("refill", self.refill, Refill, "a Refill, such as Refill(10)")
        object.__setattr__(self, "least", check_whole("least", self.least))
        object.__setattr__(self, "most", check_whole("most", self.most))
        if self.most < self.least:
            raise InputError(
                f"most must be at least as large as least ({self.least}). Got {self.most}. "
                "Raise most, or lower least."
            )

    @property
    def concurrency(self) -> int:
        """The number of clients at work."""
        return self.refill.concurrency

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """For ``invite``: the clients that are missing; none if enough are busy."""
        return self._with_steps(self.refill(ledger, rng), rng)

    def now(self, ledger: Ledger) -> Invitation | None:
        """For ``close``: the clients that are missing; None if enough are busy or none is idle."""
        found = self.refill.now(ledger)
        return None if found is None else self._with_steps(found, ledger.rng)

    def _with_steps(self, invitation: Invitation, rng: np.random.Generator) -> Invitation:
        count = len(invitation.clients)
        return replace(invitation, amount=rng.integers(self.least, self.most + 1, size=count))
