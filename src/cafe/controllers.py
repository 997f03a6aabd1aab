"""Controllers, which choose the policy of each round, and so its deadline and quorum."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol, cast

from cafe.errors import InputError, check_type
from cafe.fitting.observations import Observations
from cafe.rounds.answer_checks import check_plain
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.identity import digest
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy


@dataclass(frozen=True, eq=False)
class Choice:
    """What a controller may return instead of a policy.

    Attributes:
        policy: the policy of the round that is about to open.
        state: a value for JSON that the controller sees in the next round, as ``ledger.control``.
        reason: one sentence that says why the policy changed; empty if nothing is to be said.

    Example:
        >>> import cafe
        >>> from cafe.controllers import Choice
        >>> def growing(ledger, seen):
        ...     deadline = 2.0 * (ledger.control or 0.5)
        ...     policy = cafe.policies.mcu(quorum=1, deadline=deadline)
        ...     return Choice(policy, state=deadline, reason=f"The deadline grows to {deadline} s.")
        >>> run = cafe.simulate(cafe.Federation(5, cafe.Exponential(1.0)), growing, rounds=3)
        >>> (run.by_round["closed"] - run.by_round["opened"]).tolist()
        [1.0, 2.0, 4.0]
    """

    policy: Policy
    state: Any = None
    reason: str = ""


class Controller(Protocol):
    """Chooses the policy of each round.

    It is a function of the ledger and of the response times so far, and keeps no state in itself: a
    resumed server calls it with the same arguments and gets the same policy. What it must remember
    is the state of its :class:`Choice`.
    """

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy | Choice:
        """Return the policy for the round that is about to open, or a choice with a state.

        While the server waits for enough clients, the controller is called again whenever a client
        joins or leaves.

        Args:
            ledger: what the server knows.
            seen: the last few thousand response times, censored at missed deadlines; None if there
                are none yet.
        """


@dataclass(frozen=True)
class Fixed:
    """The same policy in every round."""

    policy: Policy

    def __post_init__(self) -> None:
        check_type("policy", self.policy, Policy, "a cafe.Policy, such as cafe.policies.mcu(...)")

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        return self.policy

    def __str__(self) -> str:
        return f"{self.policy}"


def as_controller(given: object) -> Controller:
    """A controller as it is; for a policy, a controller that always returns it.

    Raises:
        InputError: if it is neither a policy nor a controller.

    Example:
        >>> import cafe
        >>> str(as_controller(cafe.policies.mcu(quorum=1, deadline=0.5)))
        'mcu(quorum=1, deadline=0.5)'
    """
    if isinstance(given, Policy):
        return Fixed(given)
    if isinstance(given, Hierarchy):
        raise InputError(f"A policy of one level is needed here. {_two_levels(given)}")
    if not is_controller(given):
        raise InputError(
            "Expected a policy, such as cafe.policies.mcu(quorum=1, deadline=0.5), or a "
            f"controller, a function of the ledger and of the response times. Got {given!r}."
        )
    return cast(Controller, given)


def ask_controller(controller: Controller, ledger: Ledger, seen: Observations | None) -> Choice:
    """Call a controller for the policy of the next round.

    Raises:
        InputError: if the controller returns neither a Policy nor a Choice with one.
    """
    answer: object = controller(ledger, seen)
    choice = answer if isinstance(answer, Choice) else Choice(cast(Policy, answer))
    policy: object = choice.policy
    if isinstance(policy, Hierarchy):
        raise InputError(f"The controller must return a Policy. {_two_levels(policy)}")
    if not isinstance(policy, Policy):
        raise InputError(f"The controller must return a Policy or a Choice. Got {policy!r}.")
    if not isinstance(choice.reason, str):
        raise InputError(f"The reason of a Choice must be a string. Got {choice.reason!r}.")
    check_plain("The controller must return a Choice with a state", choice.state)
    return choice


def _two_levels(given: Hierarchy) -> str:
    return (
        f"Got the hierarchy {given}: two levels run in simulation only, by cafe.simulate, and "
        "without a controller. Choose a policy, such as cafe.policies.mcu(quorum=1, deadline=0.5)."
    )


def is_controller(given: object) -> bool:
    """Whether an object can be called with two arguments, a ledger and response times."""
    if not callable(given) or isinstance(given, type | Policy | Hierarchy):
        return False
    try:
        signature(given).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # the signature is unknown
        return True
    return True


def display_name(thing: object) -> str:
    """``str(thing)``; the name of the function or type if that text contains a memory address."""
    text = str(thing)
    return getattr(thing, "__name__", type(thing).__name__) if " at 0x" in text else text


def identity_of(controller: Controller) -> str:
    """The identity of a controller. A saved run is resumed only if the identity is equal.

    If a part of a controller cannot be identified, its own ``__str__`` is the identity.

    Raises:
        InputError: if the controller, or the decisions of its policy, cannot be identified.
    """
    if isinstance(controller, Fixed):
        return controller.policy.identity
    try:
        return f"{display_name(controller)} sha256:{digest(controller, what='the controller')}"
    except InputError:
        if type(controller).__str__ is object.__str__:
            raise
        return f"{controller}"
