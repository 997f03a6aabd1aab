"""A controller as a user would write it: it plans again from the observed response times."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cafe
from cafe.fitting import Observations
from cafe.policies import mcu
from cafe.rounds import Closed, Ledger, Outcome, Policy

FEWEST = 100  # reports before the first plan


@dataclass(frozen=True)
class Remember:
    """An ``observe`` that keeps the last plan in the policy's state."""

    quorum: int
    deadline: float

    def __call__(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> list[float]:
        return [self.quorum, self.deadline]


@dataclass(frozen=True)
class Replanned:
    """Fits the last response times and plans again in every ``every``-th round.

    Attributes:
        every: the number of rounds between two plans.
        cohort: how many clients a round invites; None: all.
        first: the deadline before there is a plan.
    """

    every: int = 5
    cohort: int | None = None
    first: float = 0.5

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        if seen is None or seen.reported.sum() < FEWEST:
            return mcu(quorum=1, deadline=self.first, cohort=self.cohort)
        if ledger.state is None or ledger.round % self.every == 0:
            who = cafe.Federation(ledger.clients, cafe.fit(seen).latency)
            found = cafe.plan(who, cohort=self.cohort)
            quorum, deadline = found.quorum, found.deadline
        else:
            quorum, deadline = int(ledger.state[0]), float(ledger.state[1])
        policy = mcu(quorum=quorum, deadline=deadline, cohort=self.cohort)
        return replace(policy, observe=Remember(quorum, deadline))
