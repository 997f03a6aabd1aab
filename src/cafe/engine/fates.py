"""The fate of each job of a closed round, as arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cafe.federation import Indices
from cafe.rounds.jobs import Codes, Mask, Running, Status, Whole, since
from cafe.rounds.outcome import OPEN, Fate, Outcome
from cafe.rounds.policy import Carried, Carry

OVER, FAILED = Fate.OVER, Fate.FAILED  # members of an enum are slow to look up
_MANY = 2**16  # jobs from which on counting fate by fate is quicker than all at once
_LOST = np.array([OPEN, Fate.CRASHED, Fate.ABSENT, Fate.REFUSED, OPEN], dtype=np.int8)  # by Status


def lost_jobs(now: float, jobs: Running, reported: Mask) -> Mask | None:
    """Which jobs are known never to report; None if none is."""
    if jobs.all_expected:
        return None
    status = jobs.status
    lost = (status == Status.CRASHED) & (jobs.stop <= now)  # who crashes later is at work
    lost |= (status == Status.ABSENT) | (status == Status.REFUSED)
    lost &= ~reported
    return lost if lost.any() else None


def may_run(jobs: Running, reported: Mask, lost: Mask | None) -> Mask:
    """Which jobs could go on after the close."""
    over = reported if lost is None else reported | lost
    if not jobs.all_expected:
        over = over | (jobs.status == Status.STOPPED)
    return ~over


def asked_for(carried: Carried, what: Carry, among: Callable[[], Mask]) -> Mask | None:
    """For which of some jobs a policy asked this; None: for none of all."""
    if isinstance(carried.jobs, np.ndarray):
        asked = among() & (np.bitwise_and(carried.jobs, int(what)) != 0)
        return asked if asked.any() else None
    return among() if carried.jobs & what else None


def unused_fates(
    outcome: Outcome,
    jobs: Running,
    reported: Mask,
    lost: Mask | None,
    keeps: Mask | None,
    runs: Mask | None,
    unfinished: Fate,
) -> Codes:
    """Each job's fate but for those that are used."""
    fate = np.full(len(jobs), unfinished, dtype=np.int8)
    fate[jobs.arrival <= outcome.closed] = OVER
    fate[reported] = OVER if outcome.succeeded else FAILED
    if lost is not None:
        fate[lost] = _LOST[jobs.status[lost]]
        absent = lost & (jobs.status == Status.ABSENT)
        outcome.absent_waste = float(since(outcome.closed, jobs.start[absent]).sum())
    if keeps is not None:
        fate[keeps] = OPEN
    if runs is not None:
        fate[runs] = OPEN
    return fate


def last_of_each(clients: Indices, reported: Mask) -> Mask:
    """Which of the jobs that reported are their client's last."""
    rows = np.flatnonzero(reported)
    _, first = np.unique(clients[rows][::-1], return_index=True)
    last = np.zeros(len(clients), dtype=bool)
    last[rows[len(rows) - 1 - first]] = True
    return last


def each_once(clients: Indices) -> Indices:
    """Clients without repetition, in the order in which they first occur."""
    return clients[np.sort(np.unique(clients, return_index=True)[1])]


def fate_counts(fate: Codes) -> Whole:
    """How many jobs met each fate."""
    if len(fate) < _MANY:
        return np.bincount(fate + 1, minlength=len(Fate) + 1)[1:]
    return np.array([np.count_nonzero(fate == each) for each in Fate])
