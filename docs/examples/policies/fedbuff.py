"""FedBuff as published (Nguyen et al., 2022): a client that reports is replaced at once."""

from cafe.decisions import KeepRunning, Refill
from cafe.rounds import COMMIT, Invitation, Ledger, Merge, Policy, Reports, Verdict, Wait, Waiting


def fedbuff(*, concurrency: int, goal: int, power: float = 0.5) -> Policy:
    """Keep a number of clients busy, and commit at every goal-th report.

    Args:
        concurrency: clients at work at any moment.
        goal: reports that make an update.
        power: a report that is s updates old counts 1 / (1 + s) to this power.
    """
    refill = Refill(concurrency)

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        if waiting.reports >= goal:
            return COMMIT
        return refill.now(ledger) or Wait(reports=waiting.reports + 1)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        staleness = ledger.version - reports.version
        return Merge((1.0 + staleness) ** -power / goal)

    return Policy(
        "fedbuff", refill, close, merge, KeepRunning(), target=goal, cohort=concurrency, late="keep"
    )
