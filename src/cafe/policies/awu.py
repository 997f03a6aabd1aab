"""Age-weighted update: who has not been heard for long counts for more (Sec. 7.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from cafe.decisions.build import carry_rule, closing, invite_rule, non_defaults
from cafe.decisions.weigh import ByAge, Weight
from cafe.errors import InputError, did_you_mean
from cafe.latency.base import Floats
from cafe.rounds.policy import Policy

CAP = 10.0  # the paper's Q(x) = min(x, 10)^2 (Sec. 8.3)


def _paper(age: Floats) -> Floats:
    return np.minimum(age, CAP) ** 2


def _same(age: Floats) -> Floats:
    return age


_WEIGHTS: dict[str, Callable[[Literal["time", "rounds"]], ByAge]] = {
    "paper": lambda unit: ByAge(_paper, unit),
    "age": lambda unit: ByAge(_same, unit),
    "linear": lambda _: ByAge(_same, "rounds since"),
    "unbiased": lambda _: ByAge(_same, "rounds since", "clients"),
}


def awu(
    *,
    deadline: float,
    weight: str | Weight = "paper",
    unit: Literal["time", "rounds"] = "time",
    quorum: int = 1,
    target: int | None = None,
    close_when_all: bool = False,
    cohort: int | None = None,
    steps: int = 1,
    late: Literal["drop", "keep"] = "drop",
) -> Policy:
    """Reports weighed by their client's age, taken at the deadline before it is reset.

    Args:
        deadline: how long a round waits, T.
        weight: the paper's Q. "paper": min(age, 10)^2. "age": the age itself. "linear": rounds
            since the client was last merged. All these are divided by their sum. "unbiased": as
            linear, divided by the number of clients; in the long run every client's mean
            coefficient is then exactly 1/N however seldom it reports. Or a function of the ages,
            divided by its sum.
        unit: of the age that "paper", "age" and functions see: "time" or "rounds".
        quorum: reports needed for a round to succeed; 1 in the paper.
        target: close a round as soon as so many have reported.
        close_when_all: close a round as soon as everybody has reported.
        cohort: invite so many clients, drawn anew each round, instead of everybody.
        steps: local gradient steps before a report; they take time where the federation has
            ``per_step``.
        late: "drop" jobs that miss the deadline, or "keep" them running until they report.
    """
    given = non_defaults(awu, locals())
    merge = ByAge(weight if callable(weight) else _paper, unit)  # refuses a unit that is none
    if isinstance(weight, str) and weight in _WEIGHTS:
        merge = _WEIGHTS[weight](unit)
    elif not callable(weight):
        raise InputError(f"Unknown weight '{weight}'. {did_you_mean(weight, _WEIGHTS)}")
    return Policy(
        "awu",
        invite_rule(cohort, steps),
        merge=merge,
        carry=carry_rule(late),
        parameters=given,
        cohort=cohort,
        late=late,
        **closing(quorum, deadline, target, close_when_all),
    )
