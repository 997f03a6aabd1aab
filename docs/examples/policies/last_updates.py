"""A cache of every client's last update, as in MIFA (Gu et al., 2021)."""

import numpy as np

from cafe.decisions import Everyone, closing
from cafe.rounds import HOLD, Carried, Closed, Ledger, Merge, Policy, Reports


def last_updates(*, deadline: float, quorum: int = 1) -> Policy:
    """Every update of the model uses the last report of each client that has reported.

    Args:
        deadline: how long a round lasts.
        quorum: new reports without which a round fails.
    """

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(len(reports), 1.0 / ledger.clients))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        return Carried(HOLD, kept=True)

    return Policy("last_updates", Everyone(), merge=merge, carry=carry, **closing(quorum, deadline))
