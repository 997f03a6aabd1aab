"""The outcome of one round, and the fates of jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds.jobs import Whole


class Fate(IntEnum):
    """How a job ended. Every job ends with one fate; a report used several times has its first."""

    FRESH = 0  # merged into the version that it started from
    STALE = 1  # merged into a later version
    OVER = 2  # reported, and not used by a round that succeeded
    LATE = 3  # did not report by the deadline
    FAILED = 4  # reported in a round that failed, and discarded
    CANCELLED = 5  # still running when its round closed before the deadline
    CRASHED = 6  # started and never reported: its client crashed or left
    REFUSED = 7  # its report was rejected
    ABSENT = 8  # invited, and did not start


OPEN = -1  # instead of a fate: the job is still running, or its report is held


def no_fates() -> Whole:
    """An array with a zero for each fate."""
    return np.zeros(len(Fate), dtype=np.int64)


def no_work() -> Floats:
    """An array with no client time for each fate."""
    return np.zeros(len(Fate))


@dataclass(eq=False, slots=True)
class Outcome:
    """What happened in one round, whether it succeeded or failed.

    Times and wastes are in the latency's unit. A job counts in the round in which its fate is
    decided, which may be later than the round in which it reported.

    Attributes:
        round: number of the round, from 0.
        opened: time at which it opened.
        closed: time at which it closed.
        succeeded: whether the model has a new version.
        version: version of the model after the round.
        invited: number of jobs started in it.
        reports: number of reports that arrived in it.
        used: number of reports in its update, held reports of earlier rounds included. A client
            that continued from its local model reports several jobs at once, so the number of
            merged jobs, fresh and stale, can be larger.
        reused: number of those that an earlier update used too. They already have a fate.
        fates: number of jobs that ended with each :class:`Fate`.
        waste: wasted client time, where a discarded job counts until its round closes (the paper's
            C_w).
        processing_waste: wasted client time, where a discarded job counts until its own report.
        absent_waste: the part of both wastes that is charged for clients that did not start.
        work: client time of the jobs that ended in the round, used or not. Clients that did not
            start are charged like late ones, as in both wastes.
        age: mean age of the clients after the round.
        downloads: number of times the model was sent to a client. The paper's broadcasts count
            rounds instead.
        bytes_down: bytes sent to clients; 0 without a task.
        bytes_up: bytes of the reports that arrived, used or not; 0 without a task.
        work_by_fate: client time of the jobs that ended with each :class:`Fate`. Over all rounds it
            adds up to ``work``, except for the time in kept reports that have no fate yet.
    """

    round: int
    opened: float
    closed: float
    succeeded: bool
    version: int = 0
    invited: int = 0
    reports: int = 0
    used: int = 0
    reused: int = 0
    fates: Whole = field(default_factory=no_fates)
    waste: float = 0.0
    processing_waste: float = 0.0
    absent_waste: float = 0.0
    work: float = 0.0
    age: float = 0.0
    downloads: int = 0
    bytes_down: float = 0.0
    bytes_up: float = 0.0
    work_by_fate: Floats = field(default_factory=no_work)
