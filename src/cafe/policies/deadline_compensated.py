"""A fixed deadline, at which the last update of each straggler is used again."""

from __future__ import annotations

import numpy as np

from cafe.decisions.build import closing, invite_rule, non_defaults
from cafe.policies._recipe import recipe
from cafe.rounds.answers import HOLD, Carried, Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed


def _with_stragglers(ledger: Ledger, reports: Reports) -> Merge:
    """The mean of the new reports and the last reports of invited clients that have not reported.

    A client that was not invited is not busy, and its last report is not used.
    """
    used = (reports.round == ledger.round) | ledger.busy[reports.client]
    return Merge(used / np.count_nonzero(used))


def _hold_all(ledger: Ledger, closed: Closed) -> Carried:
    return Carried(HOLD, kept=True)


@recipe("semi-asynchronous", "Zhang, Duan and Cheung (2022)", stand_in=True)
def deadline_compensated(
    *,
    deadline: float,
    quorum: int = 1,
    cohort: int | None = None,
    steps: int = 1,
) -> Policy:
    """Fixed deadline: the last update of an invited client that misses it is used again.

    A stand-in for a scheme with a fixed reporting deadline in which missing updates of stragglers
    are compensated. At the deadline the new updates and the last earlier update of each invited
    client that has not reported are averaged with equal weights. A straggler that has never
    reported is left out.

    Not verified: the text of the publication was not available. How it compensates missing
    updates, and its weights, are not known. Do not attribute results of this policy to it.

    The server keeps the last update of every client that has reported: memory for N models. A
    simulation computes an update again each time it is used again.

    Args:
        deadline: how long a round waits, T.
        quorum: new reports needed for a round to succeed.
        cohort: invite this many clients, drawn at random in each round, instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.deadline_compensated(deadline=1.0)
        >>> run = cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        >>> run
        History(deadline_compensated(deadline=1.0): 100 rounds, 100 updates)
        >>> run.reports_reused > 300  # a client misses a deadline with probability 0.37
        True
    """
    given = non_defaults(deadline_compensated, locals())
    return Policy(
        "deadline_compensated",
        invite_rule(cohort, steps),
        merge=_with_stragglers,
        carry=_hold_all,
        parameters=given,
        cohort=cohort,
        **closing(quorum, deadline),
    )
