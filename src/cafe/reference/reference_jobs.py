"""The reference's jobs: an object for each, with all that will become of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds.jobs import Jobs, Work
from cafe.rounds.outcome import Fate


@dataclass(eq=False)
class ReferenceJob:
    """One client's piece of work."""

    client: int
    start: float
    version: int
    round: int
    local: bool
    invitation: int  # the number that its random numbers have as their address
    steps: int
    note: float
    arrival: float  # when its report comes, if ever
    stop: float  # when the client stops working on it
    absent: bool  # whether it never began
    crashes: bool  # whether it is lost at ``stop``
    seconds: float  # of training
    work: Work
    before: ReferenceJob | None  # the job whose local model it goes on from
    began: int  # the version of the global model that this goes back to
    offset: Any = None  # what it adds to each gradient
    frozen: Any = None  # which parameters it leaves as they are
    uses: int = 0  # in how many updates it has been
    model: Any = None  # what it reports
    base: Any = None  # the global model that this goes back to
    loss: float = np.nan  # on its first batch there
    rms_loss: float = np.nan

    @property
    def chain(self) -> list[ReferenceJob]:
        """The jobs whose work is in its report, in order."""
        return [*([] if self.before is None else self.before.chain), self]

    def spent(self, now: float) -> float:
        """The time that its client has spent on it; an absent client is charged like a late one."""
        return min(self.stop, now) - self.start


@dataclass(eq=False)
class KeptJob:
    """What a client keeps from earlier rounds, and the jobs in it whose fate is open."""

    job: ReferenceJob  # the last one
    held: bool
    local: bool
    pending: int
    fate: Fate
    charge: float
    spent: float


def as_columns(kind: Any, jobs: list[ReferenceJob], **more: Any) -> Any:
    """Jobs as arrays, as policies see them."""
    return kind(
        client=np.array([job.client for job in jobs], dtype=np.intp),
        start=np.array([job.start for job in jobs], dtype=float),
        version=np.array([job.version for job in jobs], dtype=np.int64),
        round=np.array([job.round for job in jobs], dtype=np.int64),
        local=np.array([job.local for job in jobs], dtype=bool),
        invitation=np.array([job.invitation for job in jobs], dtype=np.int64),
        steps=np.array([job.steps for job in jobs], dtype=np.int64),
        note=np.array([job.note for job in jobs], dtype=float),
        **more,
    )


def reported_jobs(seen: list[ReferenceJob]) -> tuple[Jobs, Floats]:
    """Jobs that have reported, and when."""
    return as_columns(Jobs, seen), np.array([job.arrival for job in seen])


def total(seconds: list[float]) -> float:
    """Added up from the first to the last, as the books do."""
    total = 0.0
    for each in seconds:
        total += each
    return total
