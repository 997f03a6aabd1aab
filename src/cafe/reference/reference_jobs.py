"""The reference's jobs: one object for each job, with its times and its later fate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds.jobs import Jobs, Work
from cafe.rounds.outcome import Fate


@dataclass(eq=False)
class ReferenceJob:
    """A job of one client."""

    client: int
    start: float
    version: int
    round: int
    local: bool
    invitation: int  # the address of its random numbers
    steps: int
    note: float
    arrival: float  # when its report arrives; infinite if it never does
    stop: float  # when the client stops working on it
    absent: bool  # whether it never began
    crashes: bool  # whether it is lost at ``stop``
    seconds: float  # of training
    work: Work
    before: ReferenceJob | None  # the job whose local model it continues from
    began: int  # the version of the global model that its chain began from
    offset: Any = None  # what it adds to each gradient
    frozen: Any = None  # which parameters it does not change
    uses: int = 0  # in how many updates it has been
    model: Any = None  # what it reports
    base: Any = None  # the global model that its chain began from
    loss: float = np.nan  # on its first batch
    rms_loss: float = np.nan
    rate: float = np.nan  # the learning rate of its steps

    @property
    def chain(self) -> list[ReferenceJob]:
        """The jobs whose work is in its report, in order."""
        return [*([] if self.before is None else self.before.chain), self]

    def spent(self, now: float) -> float:
        """The time that its client has spent on it; an absent client is charged like a late one."""
        return min(self.stop, now) - self.start


@dataclass(eq=False)
class KeptJob:
    """What a client keeps from earlier rounds, and the jobs in it that have no fate yet."""

    job: ReferenceJob  # the last job in it
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
    """The jobs that have reported, and their arrival times."""
    return as_columns(Jobs, seen), np.array([job.arrival for job in seen])


def total(seconds: list[float]) -> float:
    """The sum of the numbers, added from first to last, as in the engine's books."""
    total = 0.0
    for each in seconds:
        total += each
    return total
