"""What a round used, and what became of its jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Codes, Running, Whole
from cafe.rounds.outcome import Outcome

NO_CLIENTS = np.empty(0, dtype=np.intp)
_NO_JOBS = Running.empty()


@dataclass(frozen=True, eq=False)
class UsedReports:
    """What a merge used: fresh reports by job, held ones by client, and their coefficients."""

    jobs: Indices
    held: Indices
    coefficient: Floats

    @classmethod
    def nothing(cls) -> UsedReports:
        """What a failed round used."""
        return cls(NO_CLIENTS, NO_CLIENTS, np.empty(0))

    def all_or_none(self, outcome: Outcome) -> bool:
        """Whether all reports of a round are used, and no held ones; or none at all."""
        return outcome.used == 0 or (outcome.used == outcome.reports and not len(self.held))

    @classmethod
    def by(cls, merge: Merge, index: Indices, held: Indices) -> UsedReports:
        """What a merge used of the jobs at ``index``, followed by what clients ``held``."""
        counted = merge.coefficient != 0
        if np.count_nonzero(counted) == len(counted):
            return cls(index, held, merge.coefficient)
        fresh = counted[: len(index)]
        return cls(index[fresh], held[counted[len(index) :]], merge.coefficient[counted])


class JobFates:
    """What a closed round has made of its jobs.

    Args:
        compute: returns :attr:`by_job`; called when it is first read.

    Attributes:
        running: the jobs that run on.
        kept: which of the round's jobs have their report or local model kept.
        earlier: the fates of jobs of earlier rounds whose reports were kept: clients, and the fate
            of all jobs in what each of them had kept.
    """

    def __init__(self, compute: Callable[[], Codes]) -> None:
        self._compute = compute
        self.running = _NO_JOBS
        self.kept = NO_CLIENTS
        self.earlier: list[tuple[Indices, Whole]] = []

    @cached_property
    def by_job(self) -> Codes:
        """Each job's fate; ``OPEN`` for jobs that run on or whose report is kept unused."""
        return self._compute()


def spent_on(jobs: Running) -> Floats:
    """Seconds of training in each job; of the whole response where nobody tells them apart."""
    return np.where(np.isnan(jobs.trained), jobs.arrival - jobs.start, jobs.trained)
