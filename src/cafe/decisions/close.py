"""Decisions for ``close``: when a round ends, and whether it succeeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError, check_flag, check_positive, check_whole
from cafe.rounds.answers import COMMIT, FAIL, Verdict, Wait
from cafe.rounds.ledger import Ledger
from cafe.rounds.round_views import Waiting


@dataclass(frozen=True)
class DeadlineQuorum:
    """Close at the deadline: commit if at least a quorum has reported, else fail.

    Attributes:
        quorum: number of reports needed for a round to succeed, the paper's M.
        deadline: how long a round waits, the paper's T; None waits for all invited clients.
        target: close as soon as this many reports have arrived.
        all_in: close as soon as all running jobs have reported, also those of earlier rounds.

    Example:
        >>> import cafe
        >>> from cafe.decisions import DeadlineQuorum
        >>> ledger = cafe.rounds.Ledger.new([10, 10, 10])
        >>> DeadlineQuorum(2, 0.5)(ledger, cafe.rounds.Waiting(reports=1, invited=3, outstanding=2))
        Wait(until=0.5, reports=None)
    """

    quorum: int
    deadline: float | None
    target: int | None = None
    all_in: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "quorum", check_whole("The quorum", self.quorum))
        if self.target is not None:
            object.__setattr__(self, "target", check_whole("The target", self.target))
            if self.target < self.quorum:
                raise InputError(
                    f"The target must be at least the quorum ({self.quorum}). Got {self.target}: "
                    "a round may close early only when its quorum is met."
                )
        check_flag("all_in", self.all_in)
        if isinstance(self.deadline, float) and self.deadline == np.inf:
            raise InputError(
                "The deadline must be finite. Got inf: such a round would never end. Leave the "
                "deadline out if the policy allows that, or give a large number."
            )
        if self.deadline is not None:
            deadline = check_positive(
                "The deadline", self.deadline, ": no report could arrive by it"
            )
            object.__setattr__(self, "deadline", deadline)

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        until = np.inf if self.deadline is None else ledger.opened + self.deadline
        expected = waiting.reports + waiting.outstanding
        enough = expected if self.all_in or self.deadline is None else self.target
        if enough is not None and self.target is not None:
            enough = min(enough, self.target)
        met = enough is not None and waiting.reports >= enough
        if not met and ledger.now < until:
            return Wait(until, enough)
        return COMMIT if waiting.reports >= self.quorum else FAIL
