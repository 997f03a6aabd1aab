"""Failed rounds in a row, and the sentence that explains them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InfeasibleError
from cafe.rounds.jobs import Running
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy


@dataclass
class Failures:
    """The failed rounds since the last success.

    Attributes:
        count: how many there are.
        fastest: the shortest response time in them; infinite if there was no report.
        client: the client with the shortest response time.
        spoilt: how many of them failed only because their update contained NaN or infinity.
    """

    count: int = 0
    fastest: float = float("inf")
    client: int = -1
    spoilt: int = 0

    def add(self, outcome: Outcome, jobs: Running, spoilt: bool) -> None:
        """Count a closed round. A success resets the counts."""
        if outcome.succeeded:
            self.count, self.fastest, self.client, self.spoilt = 0, float("inf"), -1, 0
            return
        self.count += 1
        self.spoilt += spoilt
        if len(jobs):
            took = jobs.arrival - jobs.start
            first = int(np.argmin(took))
            found = (float(took[first]), int(jobs.client[first]))
            self.fastest, self.client = min((self.fastest, self.client), found)

    def check(self, patience: int, policy: Policy, last: Outcome) -> None:
        """Raise an error if at least ``patience`` rounds in a row have failed."""
        if self.count < patience:
            return
        advice = "Lengthen the deadline, lower the quorum, or raise patience."
        if self.spoilt == self.count:
            advice = "Lower the learning rate."
        raise InfeasibleError(f"{self.describe(policy, last)} {advice}")

    def describe(self, policy: Policy, last: Outcome) -> str:
        """A sentence: how many rounds in a row have failed, and the reason if it is known."""
        failed = f"{self.count} rounds in a row have failed under {policy}"
        if self.spoilt:
            return (
                f"{failed}, {self.spoilt} of them because their update would have put NaN or "
                "infinity in the model."
            )
        fastest = (
            f"The fastest report in them took {self.fastest:.4g} (client {self.client})"
            if np.isfinite(self.fastest)
            else "No client reported in them"
        )
        return (
            f"{failed}. {fastest}, and the last round lasted {last.closed - last.opened:.4g} and "
            f"had {last.reports} reports."
        )
