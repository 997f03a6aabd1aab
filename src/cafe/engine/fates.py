"""The reports that a round used, and the fates of its jobs."""

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
    """The reports in an update.

    Attributes:
        jobs: the rows of the round's jobs whose reports are used.
        held: the clients whose held reports are used.
        coefficient: the coefficients of these reports: first of the jobs, then of the held ones.
    """

    jobs: Indices
    held: Indices
    coefficient: Floats

    @classmethod
    def nothing(cls) -> UsedReports:
        """The reports that a failed round used: none."""
        return cls(NO_CLIENTS, NO_CLIENTS, np.empty(0))

    def all_or_none(self, outcome: Outcome) -> bool:
        """Whether a round used all of its reports and no held ones, or none at all."""
        return outcome.used == 0 or (outcome.used == outcome.reports and not len(self.held))

    @classmethod
    def by(cls, merge: Merge, index: Indices, held: Indices) -> UsedReports:
        """The reports to which a merge gave a coefficient other than 0.

        Args:
            merge: the policy's answer.
            index: the rows of the jobs whose reports were offered.
            held: the clients whose held reports were offered.
        """
        counted = merge.coefficient != 0
        if np.count_nonzero(counted) == len(counted):
            return cls(index, held, merge.coefficient)
        fresh = counted[: len(index)]
        return cls(index[fresh], held[counted[len(index) :]], merge.coefficient[counted])


class JobFates:
    """The fates of the jobs of a closed round, and the jobs that keep running.

    Args:
        compute: returns :attr:`by_job`. It is called when :attr:`by_job` is first read.

    Attributes:
        running: the jobs that keep running after the round.
        kept: the rows of the jobs whose report or local model is kept.
        earlier: the fates of jobs of earlier rounds whose reports were kept, as pairs of arrays:
            clients, and for each client the fate of all jobs in its kept report.
    """

    def __init__(self, compute: Callable[[], Codes]) -> None:
        self._compute = compute
        self.running = _NO_JOBS
        self.kept = NO_CLIENTS
        self.earlier: list[tuple[Indices, Whole]] = []

    @cached_property
    def by_job(self) -> Codes:
        """Each job's fate; ``OPEN`` for jobs that keep running or whose report is kept unused."""
        return self._compute()


def spent_on(jobs: Running) -> Floats:
    """Seconds of training in each job; the whole response time where training is not known."""
    return np.where(np.isnan(jobs.trained), jobs.arrival - jobs.start, jobs.trained)
