"""The data types of a run: jobs, ledger, outcome, history, policy, and what a policy returns."""

from cafe.rounds.answers import (
    COMMIT,
    DROP,
    FAIL,
    HOLD,
    LOCAL,
    RUN,
    Carried,
    Carry,
    Merge,
    Verdict,
    Wait,
)
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.history import Curve, History
from cafe.rounds.jobs import Invitation, Jobs, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import NEEDS, Policy
from cafe.rounds.policy_changes import PolicyChange
from cafe.rounds.round_views import Closed, Waiting

__all__ = [
    "COMMIT",
    "DROP",
    "FAIL",
    "HOLD",
    "LOCAL",
    "NEEDS",
    "RUN",
    "Carried",
    "Carry",
    "Closed",
    "Curve",
    "Fate",
    "Hierarchy",
    "History",
    "Invitation",
    "Jobs",
    "Ledger",
    "Merge",
    "Outcome",
    "Policy",
    "PolicyChange",
    "Reports",
    "Verdict",
    "Wait",
    "Waiting",
    "Work",
]
