"""What the server asks before each round: which policy, and so which deadline, holds now."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Protocol, cast

from cafe.errors import InputError
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


def as_controller(given: object) -> Controller:
    """The controller itself; for a policy, a controller that always answers it.

    Raises:
        InputError: if it is neither.
    """
    if isinstance(given, Policy):
        return Fixed(given)
    if not is_controller(given):
        raise InputError(
            "A policy is needed, such as cafe.policies.mcu(quorum=1, deadline=0.5), or a "
            f"controller: a function of the ledger and of the response times. Got {given!r}."
        )
    return cast(Controller, given)


def ask_controller(controller: Controller, ledger: Ledger, seen: Observations | None) -> Policy:
    """The policy of the next round.

    Raises:
        InputError: if the controller answers something else.
    """
    policy = controller(ledger, seen)
    if not isinstance(policy, Policy):
        raise InputError(f"The controller must answer a policy. Got {policy!r}.")
    return policy


def is_controller(given: object) -> bool:
    """Whether an object can be called with a ledger and response times."""
    if not callable(given) or isinstance(given, type | Policy):
        return False
    try:
        signature(given).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # its signature is not known
        return True
    return True


def display_name(thing: object) -> str:
    """The name of a part of a run: its text, or its type where the text has an address."""
    text = str(thing)
    return getattr(thing, "__name__", type(thing).__name__) if " at 0x" in text else text


def identity_of(controller: Controller) -> str:
    """What a saved run must have in common with the one that goes on with it.

    A controller whose parts cannot be identified must have a text of its own (``__str__``), which
    tells it from others.

    Raises:
        InputError: if neither helps, or a policy's decisions cannot be identified completely.
    """
    if isinstance(controller, Fixed):
        return controller.policy.identity
    try:
        return f"{display_name(controller)} sha256:{digest(controller, what='the controller')}"
    except InputError:
        if type(controller).__str__ is object.__str__:
            raise
        return f"{controller}"
