"""The books of all clients of a run with two levels.

A round of an edge server is booked in the round of the cloud in which it closes. A report of a
client that its edge server has used has no fate until the cloud has used or discarded the report of
the cluster. If the cloud discards it, the client's job has the fate of the cluster's job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.jobs import Whole
from cafe.rounds.ledger import LedgerColumns
from cafe.rounds.outcome import Fate, Outcome

CloudJob = tuple[int, int]  # the number of the cloud's invitation, and the cluster
_SUMS = (
    "invited", "reports", "fates", "waste", "processing_waste", "absent_waste", "downloads",
    "bytes_down", "bytes_up", "work_by_fate",
)  # fmt: skip
_NOBODY = np.empty(0, dtype=np.intp)


@dataclass(eq=False)
class _Content:
    """What the report of a cluster contains, and its booked part that has no fate yet.

    Attributes:
        clients: the clients whose reports are in it.
        start: when the last of each client's jobs in it started.
        merged: the number of reports of each client in it.
        fate: the fate of the cluster's job; None as long as it has none.
        fresh: jobs of clients without a fate that were fresh in the cluster.
        stale: those that were stale.
        used: reports in the updates of the cluster.
        reused: those of them that an earlier update of the cluster had used too.
        seconds: client time in its updates.
        fresh_seconds: the part of it in jobs that were fresh in the cluster and have no fate.
        stale_seconds: the part of it in those that were stale.
    """

    clients: Indices
    start: Floats
    merged: Whole
    fate: int | None = None
    fresh: int = 0
    stale: int = 0
    used: int = 0
    reused: int = 0
    seconds: float = 0.0
    fresh_seconds: float = 0.0
    stale_seconds: float = 0.0


class ClientBooks:
    """The accounting of all clients below a cloud.

    Args:
        clusters: the clients of each cluster.

    Attributes:
        area: each client's age, integrated over time up to ``settled``.
        settled: the time up to which each client's age is integrated.
        last_start: when the last job of each client started whose content is in the cloud's model.
        merged: the number of reports of each client that the cloud's updates contain.
        outcomes: the rounds of the cloud, in terms of clients.
    """

    def __init__(self, clusters: Sequence[Indices]) -> None:
        self.clusters = clusters
        clients = sum(map(len, clusters))
        self.area, self.settled, self.last_start = (np.zeros(clients) for _ in range(3))
        self.merged = np.zeros(clients, dtype=np.int64)
        self.outcomes: list[Outcome] = []
        self._merged_before = [np.zeros(len(each), dtype=np.int64) for each in clusters]
        self._jobs: dict[CloudJob, _Content] = {}
        # Rounds of edge servers that are not booked yet: (close, number of the round, ...).
        self._ahead: list[tuple[float, int, Outcome, _Content]] = []
        self._played = 0
        self._now = 0.0
        self._sums = Outcome(0, 0.0, 0.0, False)

    def add_job(self, job: CloudJob, columns: LedgerColumns, played: Sequence[Outcome]) -> None:
        """Note the rounds that a cluster has played for a job of the cloud.

        Args:
            job: the job.
            columns: the ledger of the cluster after these rounds.
            played: the rounds, which may close later than the present round of the cloud.
        """
        number = job[1]
        merged = columns.merged.copy()
        added = merged - self._merged_before[number]
        mine = np.flatnonzero(added)
        content = _Content(self.clusters[number][mine], columns.last_start[mine], added[mine])
        self._merged_before[number], self._jobs[job] = merged, content
        for outcome in played:
            self._played += 1
            heappush(self._ahead, (outcome.closed, self._played, outcome, content))

    def advance(self, now: float) -> None:
        """Book the rounds of edge servers that have closed by a time."""
        self._now, sums = now, self._sums
        while self._ahead and self._ahead[0][0] <= now:
            _, _, outcome, content = heappop(self._ahead)
            for name in _SUMS:
                setattr(sums, name, getattr(sums, name) + getattr(outcome, name))
            sums.fates[: Fate.OVER] -= outcome.fates[: Fate.OVER]  # the cloud decides
            sums.work_by_fate[: Fate.OVER] -= outcome.work_by_fate[: Fate.OVER]
            sums.work += outcome.processing_waste
            content.fresh += int(outcome.fates[Fate.FRESH])
            content.stale += int(outcome.fates[Fate.STALE])
            content.used += outcome.used
            content.reused += outcome.reused
            content.seconds += outcome.work - outcome.processing_waste
            content.fresh_seconds += float(outcome.work_by_fate[Fate.FRESH])
            content.stale_seconds += float(outcome.work_by_fate[Fate.STALE])
            if content.fate is not None:
                self._settle(content, content.fate)

    def end_job(self, job: CloudJob, fate: int) -> None:
        """Give the jobs of clients in a cluster's report their fate, at the present time."""
        content = self._jobs.pop(job, None)
        if content is None:  # the cluster was absent
            return
        content.fate = fate
        self._settle(content, fate)
        if fate > Fate.STALE:
            return
        some, now = content.clients, self._now
        before = self.settled[some]
        self.area[some] += (now - before) * ((now + before) / 2 - self.last_start[some])
        self.settled[some] = now
        self.last_start[some] = np.maximum(self.last_start[some], content.start)
        self.merged[some] += content.merged

    def _settle(self, content: _Content, fate: int) -> None:
        """Book the reports in a cluster's report."""
        sums = self._sums
        sums.work += content.seconds
        second = max(fate, int(Fate.STALE))
        sums.fates[fate] += content.fresh
        sums.fates[second] += content.stale
        sums.work_by_fate[fate] += content.fresh_seconds
        sums.work_by_fate[second] += content.stale_seconds
        if fate <= Fate.STALE:
            sums.used += content.used
            sums.reused += content.reused
        else:
            sums.waste += content.seconds
            sums.processing_waste += content.seconds
        content.fresh = content.stale = content.used = content.reused = 0
        content.seconds = content.fresh_seconds = content.stale_seconds = 0.0

    def close(self, cloud: Outcome) -> Outcome:
        """The outcome of a closed round of the cloud, in terms of clients."""
        found, self._sums = self._sums, Outcome(0, 0.0, 0.0, False)
        for name in ("round", "opened", "closed", "succeeded", "version"):
            setattr(found, name, getattr(cloud, name))
        for name in ("downloads", "bytes_down", "bytes_up"):
            setattr(found, name, getattr(found, name) + getattr(cloud, name))
        found.age = cloud.closed - float(self.last_start.mean())
        self.outcomes.append(found)
        return found

    def age_by_client(self, now: float) -> Floats:
        """Each client's age, averaged over time."""
        if now <= 0:
            return np.zeros(len(self.area))
        rest = (now - self.settled) * ((now + self.settled) / 2 - self.last_start)
        return (self.area + rest) / now

    @property
    def open_jobs(self) -> int:
        """The number of booked jobs that have no fate yet."""
        return sum(each.invited - int(each.fates.sum()) for each in self.outcomes)
