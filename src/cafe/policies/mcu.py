"""M-client update: at the deadline, average all reports if there are at least M (Sec. 3)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import carry_rule, closing, invite_rule, non_defaults
from cafe.decisions.weigh import Mean
from cafe.errors import check_flag
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy


@recipe("synchronous", "Liyanaarachchi et al. (2024)")
def mcu(
    *,
    quorum: int,
    deadline: float,
    target: int | None = None,
    close_when_all: bool = False,
    cohort: int | None = None,
    steps: int = 1,
    late: Literal["drop", "keep"] = "drop",
) -> Policy:
    """M-client update (MCU), the paper's scheme: average all reports if they reach the quorum.

    Args:
        quorum: reports needed for a round to succeed, M.
        deadline: how long a round waits, T.
        target: close a round as soon as this many reports have arrived.
        close_when_all: close a round as soon as all running jobs have reported.
        cohort: invite this many clients, drawn at random in each round, instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.
        late: "drop" jobs that miss the deadline, or "keep" them running until they report.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.mcu(quorum=3, deadline=0.5)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(mcu(quorum=3, deadline=0.5): 100 rounds, 79 updates)
    """
    given = non_defaults(mcu, locals())
    return Policy(
        "mcu",
        invite_rule(cohort, steps),
        merge=Mean(),
        carry=carry_rule(late),
        parameters=given,
        cohort=cohort,
        late=late,
        **closing(quorum, deadline, target, check_flag("close_when_all", close_when_all)),
    )
