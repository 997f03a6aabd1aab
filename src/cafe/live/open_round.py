"""A round while it is open, and what is left of it when it has been played."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cafe.latency.base import Floats
from cafe.live.job_records import JobRecord
from cafe.rounds.jobs import Jobs, Mask, Running, Status
from cafe.rounds.outcome import Outcome

Key = tuple[int, int]  # a client's number and an invitation's: they name a job


@dataclass(frozen=True)
class Response:
    """How long a client took, or how long it was waited for in vain, as ``cafe fit`` reads it."""

    name: str
    seconds: float | None
    deadline: float | None


@dataclass(frozen=True, eq=False)
class PlayedRound:
    """A round that has been played.

    Attributes:
        outcome: how it ended.
        records: its jobs' fates.
        responses: how long clients took.
        lost_carries: clients that were to go on from a local model and had it no more.
        spoilt: whether it failed only because its update would have spoilt the model.
    """

    outcome: Outcome
    records: list[JobRecord]
    responses: list[Response]
    lost_carries: list[str]
    spoilt: bool


@dataclass(eq=False)
class OpenRound:
    """The jobs of the open round, with what has come of them.

    Attributes:
        jobs: all that are open; their arrival is infinite until a report is let in.
        records: one for each.
        invited: how many were started in this round.
        reported: which have reported, as far as the policy has waited.
        until: when the round closes at the latest, as far as the policy has said.
        lost_carries: clients that were to go on from a local model and had it no more.
    """

    jobs: Running
    records: list[JobRecord]
    invited: int = 0
    reported: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    until: float = float("inf")
    lost_carries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reported = np.zeros(len(self.jobs), dtype=bool)
        self._rows = {_key(record): row for row, record in enumerate(self.records)}

    def add(self, new: Running, records: list[JobRecord]) -> None:
        """Add the jobs of another invitation."""
        for record in records:
            self._rows[_key(record)] = len(self.records)
            self.records.append(record)
        self.jobs = self.jobs.then(new)
        self.reported = np.concatenate([self.reported, np.zeros(len(new), dtype=bool)])
        self.invited += len(new)

    def row(self, key: Key) -> int | None:
        """The row of a job; None if the round does not have it."""
        return self._rows.get(key)

    def answered(self) -> dict[int, tuple[int, ...]]:
        """The invitations that each client has answered in this round."""
        found: dict[int, tuple[int, ...]] = {}
        for row in np.flatnonzero(self.reported).tolist():
            record = self.records[row]
            found[record.client] = (*found.get(record.client, ()), record.invitation)
        return found

    def look(self) -> tuple[Jobs, Floats]:
        """The jobs that have reported, as decisions may see them, and when they did."""
        jobs = self.jobs.take(np.flatnonzero(self.reported))
        return jobs.visible(), jobs.arrival

    @property
    def alive(self) -> Mask:
        """Which may still report."""
        awaited: Mask = np.isinf(self.jobs.arrival) & (self.jobs.status == Status.EXPECTED)
        return awaited

    @property
    def lost(self) -> int:
        """How many are known not to report any more."""
        return int(np.count_nonzero(self.jobs.status != Status.EXPECTED))


def _key(record: JobRecord) -> Key:
    return record.client, record.invitation
