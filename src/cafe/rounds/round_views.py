"""What decisions see of a round while it is open, and when it has just closed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.jobs import Jobs, Mask, Reports, Running


class Waiting:
    """An open round at the moment when ``close`` is called.

    Args:
        reports: number of reports that have arrived in this round.
        invited: number of jobs started in this round.
        outstanding: number of jobs, of this round or older, that have not reported.
        load: returns :attr:`jobs` and :attr:`arrived`; called when one of them is first read.

    Attributes:
        reports: number of reports that have arrived in this round.
        invited: number of jobs started in this round.
        outstanding: number of jobs, of this round or older, that have not reported.
    """

    def __init__(
        self,
        reports: int,
        invited: int,
        outstanding: int,
        load: Callable[[], tuple[Jobs, Floats]] | None = None,
    ) -> None:
        self.reports, self.invited, self.outstanding = reports, invited, outstanding
        self._load = load

    @property
    def jobs(self) -> Jobs:
        """The jobs that have reported in this round, in the order in which they started.

        Their staleness is ``ledger.version - waiting.jobs.version``.
        """
        return self._seen[0]

    @property
    def arrived(self) -> Floats:
        """When each of :attr:`jobs` reported."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[Jobs, Floats]:
        if self._load is None:
            raise InputError("waiting.jobs and waiting.arrived can be read only inside a run.")
        return self._load()


class Closed:
    """A round that has just closed, for ``carry`` and ``observe``.

    Args:
        succeeded: whether the round succeeded, so that the model has a new version.
        reported: a mask over the jobs: those that have reported.
        reports: the reports that ``merge`` was given; None if the round failed.
        load: returns :attr:`jobs`, :attr:`used` and :attr:`arrived`; called when one of them is
            first read.

    Attributes:
        succeeded: whether the round succeeded, so that the model has a new version.
        reported: a mask over the jobs: those that have reported.
        reports: the reports that ``merge`` was given, held ones too; None if the round failed.
    """

    def __init__(
        self,
        succeeded: bool,
        reported: Mask,
        reports: Reports | None,
        load: Callable[[], tuple[Jobs, Mask, Floats]],
    ) -> None:
        self.succeeded, self.reported, self.reports = succeeded, reported, reports
        self._load = load

    @classmethod
    def of(
        cls,
        succeeded: bool,
        jobs: Running,
        reported: Mask,
        used: Indices,
        reports: Reports | None,
    ) -> Closed:
        """The view of a closed round that hides arrivals in the future.

        Args:
            succeeded: whether the round succeeded, so that the model has a new version.
            jobs: all jobs that were open in the round.
            reported: a mask over the jobs: those that have reported.
            used: the rows of the jobs that are in the update.
            reports: the reports that ``merge`` was given; None if the round failed.
        """

        def load() -> tuple[Jobs, Mask, Floats]:
            is_used = np.zeros(len(jobs), dtype=bool)
            is_used[used] = True
            return jobs.visible(), is_used, np.where(reported, jobs.arrival, np.nan)

        return cls(succeeded, reported, reports, load)

    @property
    def jobs(self) -> Jobs:
        """All jobs that were open in the round."""
        return self._seen[0]

    @property
    def used(self) -> Mask:
        """A mask over the jobs: those that are in the update."""
        return self._seen[1]

    @property
    def arrived(self) -> Floats:
        """When each job reported; NaN for jobs that have not reported."""
        return self._seen[2]

    @cached_property
    def _seen(self) -> tuple[Jobs, Mask, Floats]:
        return self._load()
