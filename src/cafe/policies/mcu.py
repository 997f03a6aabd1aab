"""M-client update: at the deadline, use all reports if there are at least M (Sec. 3)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import carry_rule, closing, invite_rule, non_defaults
from cafe.decisions.weigh import Mean
from cafe.rounds.policy import Policy


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
    """The paper's scheme: all reports at the deadline count alike if they reach the quorum.

    Args:
        quorum: reports needed for a round to succeed, M.
        deadline: how long a round waits, T.
        target: close a round as soon as so many have reported.
        close_when_all: close a round as soon as everybody has reported.
        cohort: invite so many clients, drawn anew each round, instead of everybody.
        steps: local gradient steps before a report; they take time where the federation has
            ``per_step``.
        late: "drop" jobs that miss the deadline, or "keep" them running until they report.
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
        **closing(quorum, deadline, target, close_when_all),
    )
