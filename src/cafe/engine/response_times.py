"""The response times of a run, which its controller sees."""

from __future__ import annotations

from collections import deque

import numpy as np

from cafe.engine.fates import JobFates
from cafe.fitting.observations import Observations
from cafe.rounds.jobs import Mask, Running
from cafe.rounds.outcome import OPEN, Fate

MAX_RESPONSES = 20_000  # the controller sees at most this many response times, the latest ones
_LOST = (Fate.CRASHED, Fate.REFUSED, Fate.ABSENT)


class ResponseTimes(deque[tuple[int, float, float]]):
    """The last response times.

    Each entry is a client, its response time (NaN if it did not report before the round closed),
    and how long the server waited for it.
    """

    def __init__(self) -> None:
        super().__init__(maxlen=MAX_RESPONSES)

    def add_round(self, jobs: Running, reported: Mask, fates: JobFates, now: float) -> None:
        """Add the response times of a round that closes now.

        A job that keeps running is added when it ends.
        """
        ended = ~np.isin(fates.by_job, _LOST) & (reported | (fates.by_job != OPEN))
        ended &= jobs.start < now  # a round of zero length carries no information
        for row in np.flatnonzero(ended).tolist():
            start, arrival = float(jobs.start[row]), float(jobs.arrival[row])
            took = arrival - start if arrival <= now else np.nan
            self.append((int(jobs.client[row]), took, now - start))

    def observations(self) -> Observations | None:
        """The response times as a controller sees them; None if there are none yet."""
        if not self:
            return None
        clients, times, awaited = zip(*self, strict=True)
        return Observations([*times], [*awaited], [f"{client}" for client in clients])
