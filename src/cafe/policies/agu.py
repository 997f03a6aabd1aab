"""Aggregated-gradient update: work of failed rounds is carried on, not thrown away (Sec. 7.2)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import closing, invite_rule, non_defaults
from cafe.decisions.carry import FailedReports
from cafe.decisions.weigh import Mean
from cafe.errors import InputError, did_you_mean
from cafe.rounds.policy import Policy


def agu(
    *,
    quorum: int,
    deadline: float,
    pool: Literal["round", "union"] = "round",
    target: int | None = None,
    close_when_all: bool = False,
    cohort: int | None = None,
    steps: int = 1,
) -> Policy:
    """Who reports in a failed round goes on from its local model; a success merges what is there.

    Args:
        quorum: reports needed for a round to succeed, M.
        deadline: how long a round waits, T.
        pool: whose accumulated gradients a success merges: the reporters of that "round", as the
            formula is written, or the "union" of all who reported since the last update.
        target: close a round as soon as so many have reported.
        close_when_all: close a round as soon as everybody has reported.
        cohort: invite so many clients, drawn anew each round, instead of everybody.
        steps: local gradient steps before a report; they take time where the federation has
            ``per_step``.
    """
    given = non_defaults(agu, locals())
    if pool not in ("round", "union"):
        raise InputError(f"Unknown pool '{pool}'. {did_you_mean(pool, ['round', 'union'])}")
    return Policy(
        "agu",
        invite_rule(cohort, steps),
        merge=Mean(),
        carry=FailedReports(pool=pool == "union"),
        cohort=cohort,
        **closing(quorum, deadline, target, close_when_all),
        needs=frozenset({"local models"}),
        parameters=given,
    )
