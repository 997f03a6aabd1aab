"""What decisions see of a round: while it is open, and when it has just closed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from cafe.errors import InputError
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.jobs import Jobs, Mask, Reports, Running


class Waiting:
    """An open round, as it stands when ``close`` is asked.

    Args:
        reports: how many have reported in this round.
        invited: how many jobs were started in it.
        outstanding: how many jobs, of this round or older, have not reported.
        look: makes :attr:`jobs` and :attr:`arrived` when they are asked for.

    Attributes:
        reports: how many have reported in this round.
        invited: how many jobs were started in it.
        outstanding: how many jobs, of this round or older, have not reported.
    """

    def __init__(
        self,
        reports: int,
        invited: int,
        outstanding: int,
        look: Callable[[], tuple[Jobs, Floats]] | None = None,
    ) -> None:
        self.reports, self.invited, self.outstanding = reports, invited, outstanding
        self._look = look

    @property
    def jobs(self) -> Jobs:
        """The jobs that have reported in this round, in the order of their rows.

        ``ledger.version - waiting.jobs.version`` is how stale each is.
        """
        return self._seen[0]

    @property
    def arrived(self) -> Floats:
        """When each of :attr:`jobs` reported."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[Jobs, Floats]:
        if self._look is None:
            raise InputError("Who has reported is known only while a run waits.")
        return self._look()


class Closed:
    """A round that has just closed, for ``carry`` and ``observe``.

    Args:
        succeeded: whether the model moved.
        reported: which of the jobs have reported.
        reports: what ``merge`` was given.
        look: makes :attr:`jobs`, :attr:`used` and :attr:`arrived` when they are asked for.

    Attributes:
        succeeded: whether the model moved.
        reported: which of the jobs have reported.
        reports: what ``merge`` was given, held reports included; None where it was not asked.
    """

    def __init__(
        self,
        succeeded: bool,
        reported: Mask,
        reports: Reports | None,
        look: Callable[[], tuple[Jobs, Mask, Floats]],
    ) -> None:
        self.succeeded, self.reported, self.reports = succeeded, reported, reports
        self._look = look

    @classmethod
    def of(
        cls,
        succeeded: bool,
        jobs: Running,
        reported: Mask,
        used: Indices,
        reports: Reports | None,
    ) -> Closed:
        """A closed round without the arrival times of jobs that have not reported.

        Args:
            succeeded: whether the model moved.
            jobs: all that were open.
            reported: which of the jobs have reported.
            used: the rows of the jobs in the update.
            reports: what ``merge`` was given.
        """

        def look() -> tuple[Jobs, Mask, Floats]:
            is_used = np.zeros(len(jobs), dtype=bool)
            is_used[used] = True
            return jobs.visible(), is_used, np.where(reported, jobs.arrival, np.nan)

        return cls(succeeded, reported, reports, look)

    @property
    def jobs(self) -> Jobs:
        """All that were open."""
        return self._seen[0]

    @property
    def used(self) -> Mask:
        """Which of the jobs are in the update."""
        return self._seen[1]

    @property
    def arrived(self) -> Floats:
        """When the reports came; not a number for jobs that have not reported."""
        return self._seen[2]

    @cached_property
    def _seen(self) -> tuple[Jobs, Mask, Floats]:
        return self._look()
