"""Age-weighted update: reports of clients with a higher age count for more (Sec. 7.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from cafe.decisions.build import carry_rule, closing, invite_rule, non_defaults
from cafe.decisions.weigh import INVERSE_PARTICIPATION, ByAge, Weight, proportional
from cafe.errors import InputError, check_flag, did_you_mean, shorten
from cafe.latency.base import Floats
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy

CAP = 10.0  # the paper's Q(x) = min(x, 10)^2 (Sec. 8.3)


def _paper(age: Floats) -> Floats:
    return np.minimum(age, CAP) ** 2


_WEIGHTS: dict[str, Callable[[Literal["time", "rounds"]], ByAge]] = {
    "paper": lambda unit: ByAge(_paper, unit),
    "age": lambda unit: ByAge(proportional, unit),
    "linear": lambda _: ByAge(proportional, "rounds since"),
    "unbiased": lambda _: INVERSE_PARTICIPATION,
}


@recipe("synchronous", "Liyanaarachchi et al. (2024)")
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
    """Age-weighted update (AWU): reports are weighed by their client's age at the deadline.

    Args:
        deadline: how long a round waits, T.
        weight: the paper's Q. "paper": min(age, 10)^2. "age": the age itself. "linear": rounds
            since the client was last merged. These weights are divided by their sum. "unbiased":
            as "linear", divided by the number of clients N; every client's mean coefficient then
            tends to 1/N however rarely it reports, as in :func:`cafe.policies.unbiased_age`. Or a
            function from an array of ages to an array of weights, which are divided by their sum.
        unit: unit of the age for "paper", "age" and functions: "time" or "rounds".
        quorum: reports needed for a round to succeed; 1 in the paper.
        target: close a round as soon as this many reports have arrived.
        close_when_all: close a round as soon as all running jobs have reported.
        cohort: invite this many clients, drawn at random in each round, instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.
        late: "drop" jobs that miss the deadline, or "keep" them running until they report.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.awu(deadline=0.5, weight="unbiased")
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(awu(deadline=0.5, weight=unbiased): 100 rounds, 99 updates)
    """
    given = non_defaults(awu, locals())
    merge = ByAge(
        weight if callable(weight) else _paper, unit
    )  # raises an error for an unknown unit
    if isinstance(weight, str) and weight in _WEIGHTS:
        merge = _WEIGHTS[weight](unit)
    elif not callable(weight):
        raise InputError(
            f"weight must be a name or a function of ages. Got {shorten(weight)}. "
            f"{did_you_mean(weight, _WEIGHTS)}"
        )
    return Policy(
        "awu",
        invite_rule(cohort, steps),
        merge=merge,
        carry=carry_rule(late),
        parameters=given,
        cohort=cohort,
        late=late,
        **closing(quorum, deadline, target, check_flag("close_when_all", close_when_all)),
    )
