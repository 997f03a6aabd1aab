"""A round while it is open, and what is left of it when it has been played."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cafe.live.records import Record
from cafe.rounds.jobs import Mask, Running
from cafe.rounds.outcome import Outcome


@dataclass(frozen=True)
class Response:
    """How long a client took, or how long it was waited for in vain, as ``cafe fit`` reads it."""

    name: str
    seconds: float | None
    deadline: float | None


@dataclass(frozen=True, eq=False)
class Round:
    """A round that has been played.

    Attributes:
        outcome: how it ended.
        records: its jobs' fates.
        responses: how long clients took.
        lost_carries: clients that were to go on from a local model and had it no more.
        spoilt: whether it failed only because its update would have spoilt the model.
    """

    outcome: Outcome
    records: list[Record]
    responses: list[Response]
    lost_carries: list[str]
    spoilt: bool


@dataclass(eq=False)
class Open:
    """The jobs of the open round, with what has come of them.

    Attributes:
        jobs: all that are open; arrivals are not a number until a report is let in.
        records: one for each.
        refused: which have sent what was not accepted.
        invited: how many were started in this round.
        until: when the round closes at the latest, as far as the policy has said.
        lost_carries: clients that were to go on from a local model and had it no more.
    """

    jobs: Running
    records: list[Record]
    refused: Mask
    invited: int
    until: float = float("inf")
    lost_carries: list[str] = field(default_factory=list)

    @property
    def alive(self) -> Mask:
        """Which may still report."""
        return np.isnan(self.jobs.arrival) & np.isinf(self.jobs.stop)

    def waits_for(self, client: int) -> bool:
        """Whether a client may still report."""
        return bool((self.alive & (self.jobs.client == client)).any())

    @property
    def given_up(self) -> Mask:
        """Which have stopped at their deadline."""
        return np.isnan(self.jobs.arrival) & np.isfinite(self.jobs.stop)

    @property
    def lost(self) -> int:
        """How many are known not to report any more."""
        return int(np.count_nonzero(np.isinf(self.jobs.arrival) | self.given_up))
