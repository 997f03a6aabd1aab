"""The bytes that a run sends and receives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cafe.rounds.jobs import Mask, Running, Status, Work
from cafe.rounds.outcome import Outcome


@dataclass(eq=False)
class Traffic:
    """Counts downloads and bytes, and writes them into the outcome of a round.

    Attributes:
        model_bytes: the size of the model; 0 without a task.
        uploads: the size of a report as a share of the model's, by invitation; only where it is
            not 1.
    """

    model_bytes: int
    uploads: dict[int, float] = field(default_factory=dict)

    def count_down(self, outcome: Outcome, new: Running, work: Work, vectors: int) -> None:
        """Count what is sent to the clients of an invitation.

        Args:
            outcome: the outcome of the round.
            new: the jobs that the invitation starts.
            work: the work of the jobs.
            vectors: how many of the clients are sent a vector in addition to the model.
        """
        sent = len(new)
        if not new.all_expected:
            sent -= int(np.count_nonzero(new.status == Status.ABSENT))
        outcome.downloads += sent
        outcome.bytes_down += sent * work.download * self.model_bytes
        outcome.bytes_down += vectors * self.model_bytes
        if work.upload != 1.0 and len(new):
            self.uploads[int(new.invitation[0])] = work.upload

    def count_up(self, outcome: Outcome, jobs: Running, reported: Mask, running: Running) -> None:
        """Count the bytes of a closed round's reports.

        Args:
            outcome: the outcome of the round, after the round was booked.
            jobs: the jobs of the round.
            reported: which of them have reported.
            running: the jobs that keep running after the round.
        """
        weight = float(outcome.reports)
        if self.uploads:
            numbers, counts = jobs.invitation[reported], dict[float, int]()
            for number, share in self.uploads.items():
                counts[share] = counts.get(share, 0) + int(np.count_nonzero(numbers == number))
            counts[1.0] = outcome.reports - sum(counts.values())
            weight = sum(share * count for share, count in sorted(counts.items()))
            going_on = set(running.invitation.tolist())
            self.uploads = {n: share for n, share in self.uploads.items() if n in going_on}
        outcome.bytes_up = weight * self.model_bytes
