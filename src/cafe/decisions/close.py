"""When to stop waiting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError, check_positive, check_whole
from cafe.rounds.answers import COMMIT, FAIL, Verdict, Wait
from cafe.rounds.ledger import Ledger
from cafe.rounds.round_views import Waiting


@dataclass(frozen=True)
class DeadlineQuorum:
    """At the deadline: commit with at least a quorum of reports, else fail.

    Attributes:
        quorum: the paper's M.
        deadline: the paper's T; None waits for everybody who was invited.
        target: close as soon as so many have reported.
        all_in: close as soon as everybody who was invited, or still runs, has reported.
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
                    "a round closes early only when it has already succeeded."
                )
        if self.deadline == np.inf:
            raise InputError(
                "The deadline must be finite. Got inf: a round that waits for it would never end. "
                "Leave it out if the policy can do without, else give a large number."
            )
        if self.deadline is not None:
            deadline = check_positive(
                "The deadline", self.deadline, ": no report could arrive by it"
            )
            object.__setattr__(self, "deadline", deadline)

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        """Wait for the deadline or for enough reports; then the quorum decides."""
        until = np.inf if self.deadline is None else ledger.opened + self.deadline
        everybody = waiting.reports + waiting.outstanding
        enough = everybody if self.all_in or self.deadline is None else self.target
        if enough is not None and self.target is not None:
            enough = min(enough, self.target)
        met = enough is not None and waiting.reports >= enough
        if not met and ledger.now < until:
            return Wait(until, enough)
        return COMMIT if waiting.reports >= self.quorum else FAIL
