"""The deadline and the quorum of a watched round: fixed, or chosen before each round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cafe.controllers import Choice, Controller, as_controller, ask_controller, is_controller
from cafe.errors import InputError, check_positive, check_whole
from cafe.fitting.observations import Observations
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

_WHAT = (
    "deadline must be a positive number of seconds, or a function of the ledger and of the "
    "response times so far that returns one"
)


@dataclass(frozen=True)
class Terms:
    """What a round needs to succeed.

    Attributes:
        deadline: seconds that the round lasts at most.
        quorum: reports needed.
        target: reports at which the round closes early; None: it waits for every invited client.
        choice: what a controller has chosen; None without one.

    Raises:
        InputError: if the target is below the quorum.
    """

    deadline: float
    quorum: int
    target: int | None
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if self.target is not None and self.target < self.quorum:
            raise InputError(
                f"target must be at least the quorum ({self.quorum}). Got {self.target}: a round "
                "may close early only when its quorum is met."
            )

    def at_most(self, invited: int) -> Terms:
        """The terms with a quorum and a target that this many clients can meet."""
        target = None if self.target is None else min(self.target, invited)
        return replace(self, quorum=min(self.quorum, invited), target=target)


ChooseTerms = Callable[[Ledger, Observations | None], Terms]


def read_terms(deadline: Any, quorum: Any, target: Any, controller: Any) -> Terms | ChooseTerms:
    """The terms of every round, or a function that returns those of the next one.

    Args:
        deadline: a number, or a function that returns a number; None with a controller.
        quorum: reports needed; None: 1, or with a controller those of its policy.
        target: reports at which a round closes; None: no number, or with a controller that of its
            policy.
        controller: a controller or a policy; None with a deadline.

    Raises:
        InputError: if one of them cannot be used; the returned function raises it too, if the
            function returns no number, or the controller no policy with a deadline.
    """
    if controller is not None:
        chooser: Controller = as_controller(controller)
        given = {"deadline": deadline, "quorum": quorum, "target": target}
        for name, value in given.items():
            if value is not None:
                raise InputError(
                    f"{name} cannot be given with controller, whose policy has the deadline, the "
                    f"quorum and the target. Got {value!r}: leave out one of the two."
                )
        return lambda ledger, seen: _terms_of(ask_controller(chooser, ledger, seen))
    if deadline is None:
        raise InputError("A watched round needs a deadline: give deadline= or controller=.")
    if isinstance(deadline, Policy):
        raise InputError(f"{_WHAT}. Got the policy {deadline}: pass it as controller=.")
    quorum = 1 if quorum is None else check_whole("quorum", quorum)
    if target is not None:
        target = check_whole("target", target)
    if is_controller(deadline):
        Terms(1.0, quorum, target)  # raises an error if the two do not fit
        return lambda ledger, seen: Terms(_check_deadline(deadline(ledger, seen)), quorum, target)
    return Terms(_check_deadline(deadline), quorum, target)


def _check_deadline(value: Any) -> float:
    if isinstance(value, Policy | Choice):
        what = f"the policy {value}" if isinstance(value, Policy) else "a Choice"
        raise InputError(
            f"{_WHAT}. Got {what} from the function: a function that returns policies is a "
            "controller, so pass it as controller=."
        )
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"{_WHAT}. Got {value!r}.")
    return check_positive("deadline", float(value), ": no report could arrive by then")


def _terms_of(choice: Choice) -> Terms:
    policy = choice.policy
    if policy.deadline is None:
        raise InputError(
            f"The controller's policy {policy} has no deadline, but a watched round needs one. "
            "Return a policy with a deadline."
        )
    target = policy.target if isinstance(policy.target, int) else None
    return Terms(policy.deadline, policy.quorum, target, choice)
