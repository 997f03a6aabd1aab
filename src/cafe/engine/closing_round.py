"""A round that has closed: the fate of each of its jobs, and the time that they have cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.engine.fates import UsedReports
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.answers import HOLD, LOCAL, RUN, Carried, Carry
from cafe.rounds.jobs import Codes, Mask, Running, Status, Whole, elapsed, take_rows
from cafe.rounds.outcome import OPEN, Fate, Outcome

OVER, FAILED = Fate.OVER, Fate.FAILED  # members of an enum are slow to look up
_MANY = 2**16  # from this many jobs on, counting fate by fate is faster than bincount
_LOST = np.array([OPEN, Fate.CRASHED, Fate.ABSENT, Fate.REFUSED, OPEN], dtype=np.int8)  # by Status


@dataclass(frozen=True, eq=False)
class ClosingRound:
    """A round that has closed and is being booked.

    Attributes:
        outcome: the outcome of the round. It has the time of the close and whether the round
            succeeded; the books fill in the rest.
        jobs: all jobs that were open; a client's older job comes before its newer ones.
        reported: which of them have reported.
        used: the reports in the update.
        carried: what ``carry`` returned: what is kept after the round.
        unfinished: the fate of jobs that the close cuts off.
        repeats: whether a client may have several of the jobs.
    """

    outcome: Outcome
    jobs: Running
    reported: Mask
    used: UsedReports
    carried: Carried
    unfinished: Fate
    repeats: bool = False

    # The next three properties are None if there is no such job. Most rounds have none, and None
    # saves passes over all clients.

    @cached_property
    def lost(self) -> Mask | None:
        """Which jobs are known never to report."""
        return _lost(self.outcome.closed, self.jobs, self.reported)

    @cached_property
    def runs(self) -> Mask | None:
        """Which jobs keep running after the close."""
        return _asked_for(self.carried, RUN, lambda: _may_run(self.jobs, self.reported, self.lost))

    @cached_property
    def keeps(self) -> Mask | None:
        """Which reports or local models are kept."""
        keeps = _asked_for(self.carried, HOLD | LOCAL, lambda: self.reported)
        if keeps is not None and self.repeats:
            keeps = keeps & _last_of_each(self.jobs.client, self.reported)
        return keeps

    @cached_property
    def spent(self) -> Floats:
        """Client time spent on each job up to the close."""
        spent = np.minimum(self.jobs.stop, self.outcome.closed)
        spent -= self.jobs.start
        return spent

    @property
    def simple(self) -> bool:
        """Whether there are at most two fates: one of all reports, and one of all other jobs."""
        if self.repeats or self.keeps is not None or isinstance(self.carried.jobs, np.ndarray):
            return False
        if not self.jobs.all_expected or not self.used.all_or_none(self.outcome):
            return False
        # A report that arrives at the same time as the one that reaches the target is not used.
        came = int(np.count_nonzero(self.jobs.arrival <= self.outcome.closed))
        return came == self.outcome.reports

    def fates(self) -> Codes:
        """Each job's fate, except for used jobs, whose fate the caller writes."""
        outcome, jobs, lost = self.outcome, self.jobs, self.lost
        fate = np.full(len(jobs), self.unfinished, dtype=np.int8)
        fate[jobs.arrival <= outcome.closed] = OVER
        fate[self.reported] = OVER if outcome.succeeded else FAILED
        if lost is not None:
            fate[lost] = _LOST[jobs.status[lost]]
            absent = lost & (jobs.status == Status.ABSENT)
            outcome.absent_waste = float(elapsed(outcome.closed, jobs.start[absent]).sum())
        for still_open in (self.keeps, self.runs):
            if still_open is not None:
                fate[still_open] = OPEN
        return fate

    def charge(self, wasted: Indices) -> None:
        """Write the work and the waste of the round into its outcome."""
        outcome, runs, spent = self.outcome, self.runs, self.spent
        outcome.work = float((spent if runs is None else spent[~runs]).sum())
        start = take_rows(self.jobs.start, wasted)
        outcome.waste += float(elapsed(outcome.closed, start).sum())
        outcome.processing_waste += float(spent[wasted].sum())

    def charge_used(self, stale: Mask, late: int) -> None:
        """Add the work of the used jobs to the outcome.

        Args:
            stale: which of them began from an older version.
            late: how many.
        """
        spent, work = take_rows(self.spent, self.used.jobs), self.outcome.work_by_fate
        if 0 < late < len(stale):
            work[0], work[1] = spent[~stale].sum(), spent[stale].sum()  # FRESH, STALE
        else:
            work[int(late > 0)] = spent.sum()

    def charge_fates(self, fate: Codes, counts: Whole) -> None:
        """Add the work of the jobs with each fate to the outcome.

        Args:
            fate: each job's fate.
            counts: the number of jobs with each fate.
        """
        for each in np.flatnonzero(counts).tolist():
            self.outcome.work_by_fate[each] += self.spent[fate == each].sum()


def _lost(now: float, jobs: Running, reported: Mask) -> Mask | None:
    """Which jobs are known never to report; None if none is."""
    if jobs.all_expected:
        return None
    status = jobs.status
    lost = (status == Status.CRASHED) & (
        jobs.stop <= now
    )  # a client that crashes later still works
    lost |= (status == Status.ABSENT) | (status == Status.REFUSED)
    lost &= ~reported
    return lost if lost.any() else None


def _may_run(jobs: Running, reported: Mask, lost: Mask | None) -> Mask:
    """Which jobs can keep running after the close."""
    over = reported if lost is None else reported | lost
    if not jobs.all_expected:
        over = over | (jobs.status == Status.STOPPED)
    return ~over


def _asked_for(carried: Carried, what: Carry, among: Callable[[], Mask]) -> Mask | None:
    """The jobs in the mask ``among()`` for which the policy returned ``what``; None if none."""
    if isinstance(carried.jobs, np.ndarray):
        asked = among() & (np.bitwise_and(carried.jobs, int(what)) != 0)
        return asked if asked.any() else None
    return among() if carried.jobs & what else None


def _last_of_each(clients: Indices, reported: Mask) -> Mask:
    """Which of the jobs that reported are the last of their client."""
    rows = np.flatnonzero(reported)
    _, first = np.unique(clients[rows][::-1], return_index=True)
    last = np.zeros(len(clients), dtype=bool)
    last[rows[len(rows) - 1 - first]] = True
    return last


def each_once(clients: Indices) -> Indices:
    """Clients without repetition, in the order in which they first occur."""
    return clients[np.sort(np.unique(clients, return_index=True)[1])]


def fate_counts(fate: Codes) -> Whole:
    """The number of jobs with each fate."""
    if len(fate) < _MANY:
        return np.bincount(fate + 1, minlength=len(Fate) + 1)[1:]
    return np.array([np.count_nonzero(fate == each) for each in Fate])
