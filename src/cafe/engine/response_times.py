"""The response times of a run, which its controller sees."""

from __future__ import annotations

import numpy as np

from cafe.engine.fates import JobFates
from cafe.fitting.observations import Observations
from cafe.latency.base import Floats
from cafe.rounds.jobs import Mask, Running
from cafe.rounds.outcome import OPEN, Fate

MAX_RESPONSES = 20_000  # the controller sees at most this many response times, the latest ones
_LOST = (Fate.CRASHED, Fate.REFUSED, Fate.ABSENT)


class ResponseTimes:
    """The last response times.

    Attributes:
        rows: a row for each of them, the oldest first: the client, its response time (NaN if it did
            not report before the round closed), and how long the server waited for it.
    """

    def __init__(self) -> None:
        self.rows: Floats = np.empty((0, 3))

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: Floats) -> None:
        """Add rows. Only the last ``MAX_RESPONSES`` are kept."""
        kept = self.rows[max(len(self.rows) + len(rows) - MAX_RESPONSES, 0) :]
        self.rows = np.concatenate([kept, rows[-MAX_RESPONSES:]])

    def add_round(self, jobs: Running, reported: Mask, fates: JobFates, now: float) -> None:
        """Add the response times of a round that closes now.

        A job that keeps running is added when it ends.
        """
        ended = ~np.isin(fates.by_job, _LOST) & (reported | (fates.by_job != OPEN))
        ended &= jobs.start < now  # a round of zero length carries no information
        last = np.flatnonzero(ended)[-MAX_RESPONSES:]
        start, arrival = jobs.start[last], jobs.arrival[last]
        took = np.where(arrival <= now, arrival - start, np.nan)
        self.add(np.column_stack([jobs.client[last], took, now - start]))

    def observations(self) -> Observations | None:
        """The response times as a controller sees them; None if there are none yet."""
        if not len(self):
            return None
        clients, times, awaited = self.rows.T
        return Observations(
            times, awaited, [f"{client}" for client in clients.astype(int).tolist()]
        )
