"""Invite the clients whose loss was highest when they last reported."""

from typing import Any

import numpy as np

from cafe.decisions import DropAll, Mean, closing
from cafe.rounds import Closed, Invitation, Ledger, Outcome, Policy


def high_loss(*, cohort: int, deadline: float) -> Policy:
    """Prefer clients with high losses, and those that have not reported yet to all others.

    Args:
        cohort: clients that are invited.
        deadline: how long a round lasts at most; it closes when all of them have reported.
    """

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        seen, idle = ledger.state or {}, ledger.idle
        loss = np.array([seen.get(f"{client}", np.inf) for client in idle.tolist()])
        best = np.lexsort((rng.random(len(idle)), -loss))[:cohort]  # ties are broken at random
        return Invitation(np.sort(idle[best]))

    def observe(ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
        seen, reports = ledger.state or {}, closed.reports
        if reports is None or reports.losses is None:
            return seen
        # A state has finite numbers only. Losses are rounded so that equal ones are ties.
        losses = np.nan_to_num(reports.losses).round(4).tolist()
        return seen | {f"{k}": x for k, x in zip(reports.client.tolist(), losses, strict=True)}

    return Policy(
        "high_loss",
        invite,
        merge=Mean(),
        carry=DropAll(),
        observe=observe,
        needs=frozenset({"losses"}),
        cohort=cohort,
        **closing(quorum=1, deadline=deadline, all_in=True),
    )
