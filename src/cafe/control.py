"""What the server asks before each round: which policy, and so which deadline, holds now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cafe.fitting.observations import Observations
from cafe.rounds.identity import digest
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy


class Controller(Protocol):
    """Chooses the policy of each round.

    It is a function of the ledger and of the response times seen so far, and keeps nothing of its
    own: a server that was stopped and goes on asks it the same and hears the same.
    """

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        """The policy for the round that is about to open.

        While the round waits for clients, it is asked again whenever one comes or goes.

        Args:
            ledger: what the server knows.
            seen: the last response times, some thousands of them, censored at the deadlines that
                were missed; None where there are none yet.
        """


@dataclass(frozen=True)
class Fixed:
    """The same policy in every round."""

    policy: Policy

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        """That policy."""
        return self.policy

    def __str__(self) -> str:
        return f"{self.policy}"


def titled(thing: object) -> str:
    """What a part of a run is called: its text, or its kind where the text is an address."""
    text = str(thing)
    return getattr(thing, "__name__", type(thing).__name__) if " at 0x" in text else text


def identity_of(controller: Controller) -> str:
    """What a saved run must have in common with the one that goes on with it.

    Raises:
        InputError: if a policy's or a controller's decisions cannot be identified completely.
    """
    if isinstance(controller, Fixed):
        return controller.policy.identity
    return f"{titled(controller)} sha256:{digest(controller)}"
