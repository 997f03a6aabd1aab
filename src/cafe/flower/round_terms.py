"""The deadline and the quorum of a round: fixed, or chosen by a controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.controllers import Controller, as_controller, is_controller
from cafe.errors import InputError, check_positive, check_whole
from cafe.fitting.observations import Observations
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

_WHAT = (
    "deadline must be a positive number of seconds, or a function of the ledger and of the "
    "response times so far that returns one, or a controller, which returns a policy"
)


@dataclass(frozen=True)
class Terms:
    """What a round needs to succeed.

    Attributes:
        deadline: seconds that the round lasts at most.
        quorum: reports needed.
        target: reports at which the round closes early; None: it waits for every invited client.
    """

    deadline: float
    quorum: int
    target: int | None

    def __post_init__(self) -> None:
        if self.target is not None and self.target < self.quorum:
            raise InputError(
                f"target must be at least the quorum ({self.quorum}). Got {self.target}: a round "
                "may close early only when its quorum is met."
            )


ChooseTerms = Callable[[Ledger, Observations | None], Terms]


def read_terms(deadline: Any, quorum: Any, target: Any) -> Terms | ChooseTerms:
    """The terms of every round, or a function that returns those of the next one.

    Args:
        deadline: a number, a function that returns a number, a controller, or a policy.
        quorum: reports needed; None: those of the controller's policy, or else 1.
        target: reports at which a round closes; None: those of the controller's policy, if any.

    Raises:
        InputError: if one of them cannot be used; the returned function raises it too, if a
            controller returns something else than a policy with a deadline, or a number.
    """
    if quorum is not None:
        quorum = check_whole("quorum", quorum)
    if target is not None:
        target = check_whole("target", target)
    if isinstance(deadline, Policy) or is_controller(deadline):
        controller: Controller = as_controller(deadline)
        return lambda ledger, seen: _read_choice(controller(ledger, seen), quorum, target)
    return Terms(_check_deadline(deadline), quorum or 1, target)


def _check_deadline(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"{_WHAT}. Got {value!r}.")
    return check_positive("deadline", float(value), ": no report could arrive by then")


def _read_choice(choice: Any, quorum: int | None, target: int | None) -> Terms:
    if not isinstance(choice, Policy):
        return Terms(_check_deadline(choice), quorum or 1, target)
    if choice.deadline is None:
        raise InputError(
            f"The controller's policy {choice} has no deadline, but a watched round needs one. "
            "Return a policy with a deadline."
        )
    if target is None and isinstance(choice.target, int):
        target = choice.target
    return Terms(choice.deadline, quorum or choice.quorum, target)
