"""One round, as it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from cafe.rounds.jobs import Whole


class Fate(IntEnum):
    """What became of a job. Every job has exactly one fate in the end: that of its first use."""

    FRESH = 0  # merged into the version it began from
    STALE = 1  # merged into a later version
    OVER = 2  # reported, and not used by a round that succeeded
    LATE = 3  # not there at the deadline
    FAILED = 4  # reported in a round that failed, and discarded
    CANCELLED = 5  # still running when its round closed before the deadline
    CRASHED = 6  # begun, and never reported: its client crashed or left
    REFUSED = 7  # reported something that was not accepted
    ABSENT = 8  # invited, and never began


OPEN = -1  # instead of a fate: the job runs on, or its report is kept


def no_fates() -> Whole:
    """A count per fate, all 0."""
    return np.zeros(len(Fate), dtype=np.int64)


@dataclass(eq=False, slots=True)
class Outcome:
    """One round, succeeded or failed.

    Times and wastes are in the latency's unit. A job whose fate is decided in a later round than
    the one it reported in is booked in that later round.

    Attributes:
        round: its number, from 0.
        opened: when it began.
        closed: when it ended.
        succeeded: whether the model moved.
        version: the model's version after it.
        invited: jobs started in it.
        reports: reports that came in it.
        used: reports in its update, earlier ones that were held included. A client that went on
            from its local model reports the work of several jobs at once: merged jobs, fresh and
            stale, may be more.
        reused: those of them that were in an earlier update too. They have their fate from then.
        fates: how many jobs met each :class:`Fate`.
        waste: client time thrown away, a discarded job being charged to the close of its round (the
            paper's C_w).
        processing_waste: the same, charged to the job's own report.
        absent_waste: the part of both that clients are charged who never began.
        work: client time spent by the jobs that ended in it, used or not; clients who never began
            are charged as if they were late, as in both wastes.
        age: the mean over clients of the age after it.
        downloads: how many times the model was sent to a client. The paper's broadcasts count
            rounds instead.
        bytes_down: bytes sent to clients; 0 without a task, where there is no model.
        bytes_up: bytes that reports had when they came, used or not; likewise.
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
