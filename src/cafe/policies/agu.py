"""Aggregated-gradient update: the work of failed rounds is kept (Sec. 7.2)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import closing, invite_rule, non_defaults
from cafe.decisions.carry import FailedReports
from cafe.decisions.weigh import Mean
from cafe.errors import check_choice, check_flag
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy


@recipe("semi-asynchronous", "Liyanaarachchi et al. (2024)")
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
    """Aggregated-gradient update (AGU): the work of failed rounds is merged by the next success.

    Clients that report in a failed round continue from their local models.

    Args:
        quorum: reports needed for a round to succeed, M.
        deadline: how long a round waits, T.
        pool: whose accumulated gradients a success merges: those of clients that report in that
            "round", as in the paper's formula, or the "union" of all that have reported since the
            last update.
        target: close a round as soon as this many reports have arrived.
        close_when_all: close a round as soon as all running jobs have reported.
        cohort: invite this many clients, drawn at random in each round, instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.agu(quorum=5, deadline=0.5, pool="union")
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(agu(quorum=5, deadline=0.5, pool=union): 100 rounds, 34 updates)
    """
    given = non_defaults(agu, locals())
    check_choice("pool", pool, ["round", "union"])
    return Policy(
        "agu",
        invite_rule(cohort, steps),
        merge=Mean(),
        carry=FailedReports(pool=pool == "union"),
        cohort=cohort,
        **closing(quorum, deadline, target, check_flag("close_when_all", close_when_all)),
        needs=frozenset({"local models"}),
        parameters=given,
    )
