"""Example policies for docs/how-to/policies-by-name.md."""

import numpy as np

from cafe.decisions import Everyone
from cafe.rounds import COMMIT, RUN, Carried, Merge, Policy, Wait


def buffered(*, goal: int, power: float = 0.5) -> Policy:
    """Commit at every goal-th report, damp stale reports, let the other clients keep running.

    Args:
        goal: reports that make an update.
        power: a report that is s updates old counts 1 / (1 + s) to this power.
    """

    def close(ledger, waiting):
        return COMMIT if waiting.reports >= goal else Wait(reports=goal)

    def merge(ledger, reports):
        staleness = ledger.version - reports.version
        return Merge(np.power(1.0 + staleness, -power) / goal)

    return Policy("buffered", Everyone(), close, merge, lambda ledger, closed: Carried(RUN))
