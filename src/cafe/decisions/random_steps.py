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
        least_steps: the least number of steps.
        most_steps: the largest number of steps. All numbers in between are equally likely.

    Example:
        >>> from cafe.decisions import RandomSteps, Refill
        >>> RandomSteps(Refill(20), least_steps=1, most_steps=5).concurrency
        20
    """

    refill: Refill
    least_steps: int
    most_steps: int

    def __post_init__(self) -> None:
        check_type("refill", self.refill, Refill, "a Refill, such as Refill(10)")
        object.__setattr__(self, "least_steps", check_whole("least_steps", self.least_steps))
        object.__setattr__(self, "most_steps", check_whole("most_steps", self.most_steps))
        if self.most_steps < self.least_steps:
            raise InputError(
                f"most_steps must be at least least_steps ({self.least_steps}). Got "
                f"{self.most_steps}. Raise most_steps, or lower least_steps."
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
        steps = rng.integers(self.least_steps, self.most_steps + 1, size=count)
        return replace(invitation, amount=steps)
