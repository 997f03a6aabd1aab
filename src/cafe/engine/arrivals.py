"""The jobs of an open round, and their reports, sorted by time and then by client."""

from __future__ import annotations

import heapq

import numpy as np

from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.answers import Wait
from cafe.rounds.jobs import Jobs, Mask, Running
from cafe.rounds.ledger import Ledger

_FEW = 64  # the jobs of an invitation go into the heap if there are at most this many


def end_of_wait(jobs: Running, wait: Wait) -> tuple[float, Mask]:
    """When a wait ends, and which jobs have reported by then.

    If reports arrive at the same time, the client with the smaller number comes first.
    """
    if wait.reports is not None and wait.reports <= len(jobs):
        count = max(wait.reports, 1)
        last = float(np.partition(jobs.arrival, count - 1)[count - 1])
        if last <= wait.until and last < float("inf"):
            reported = jobs.arrival < last
            ties = np.flatnonzero(jobs.arrival == last)
            ties = ties[np.argsort(jobs.client[ties], kind="stable")]
            reported[ties[: count - int(np.count_nonzero(reported))]] = True
            return last, reported
    # A job that never reports has an infinite arrival: an endless wait does not count it.
    return wait.until, jobs.arrival <= min(wait.until, np.finfo(float).max)


class Arrivals:
    """The jobs of an open round, and which of them have reported.

    The first wait of a round works on whole arrays. Later waits, and waits after an invitation in
    the open round, process one report after the other, so that the cost of a report does not depend
    on the number of jobs or clients.

    Args:
        running: the jobs of earlier rounds.
        new: the jobs of this round's first invitation.

    Attributes:
        invited: how many jobs were started in this round.
        count: how many jobs have reported.
        repeats: whether clients were invited while the round was open, so that a client may have
            several of the jobs.
    """

    def __init__(self, running: Running, new: Running) -> None:
        self._parts = [running.then(new)]
        self._rows = len(self._parts[0])
        self._base = self._parts[0]  # the jobs that are sorted as arrays, not by the heap
        self._mask = np.zeros(self._rows, dtype=bool)
        self._later: list[int] = []  # rows of reported jobs that are not in the base
        self._heap: list[tuple[float, int, int]] = []
        self._order: Indices | None = None  # rows of the base that have not reported, in order
        self._times: Floats = np.empty(0)
        self._at = 0
        self._asked = False
        self.invited = len(new)
        self.count = 0
        self.repeats = False

    def __len__(self) -> int:
        return self._rows

    @property
    def jobs(self) -> Running:
        """All jobs, in the order in which they were started."""
        if len(self._parts) > 1:
            some = [part for part in self._parts if len(part)]
            self._parts = [Running.concatenate(some)] if some else self._parts[:1]
        return self._parts[0]

    @property
    def reported(self) -> Mask:
        """Which of the jobs have reported."""
        if self._rows == len(self._mask):
            return self._mask
        whole = np.zeros(self._rows, dtype=bool)
        whole[: len(self._mask)] = self._mask
        whole[self._later] = True
        return whole

    def look(self) -> tuple[Jobs, Floats]:
        """The jobs that have reported, as decisions may see them, and their arrival times."""
        rows = np.flatnonzero(self.reported)
        jobs = self.jobs.take(rows)
        return jobs.visible(), jobs.arrival

    def add(self, new: Running) -> None:
        """Add the jobs of another invitation."""
        self.repeats = True
        self.invited += len(new)
        first = self._rows
        self._parts.append(new)
        self._rows += len(new)
        if len(new) <= _FEW:
            times, clients = new.arrival.tolist(), new.client.tolist()
            for k, (time, client) in enumerate(zip(times, clients, strict=True)):
                heapq.heappush(self._heap, (time, client, first + k))
            self._asked = True
            return
        # A large invitation: its jobs are merged into the arrays.
        self._mask = self.reported
        self._base, self._later, self._heap, self._order = self.jobs, [], [], None

    def wait(self, wait: Wait, ledger: Ledger) -> float:
        """Collect the reports that arrive during a wait, and return when the wait ends."""
        if not self._asked and not self._heap and not self.count:
            self._asked = True
            moment, self._mask = end_of_wait(self._base, wait)
            self.count = int(np.count_nonzero(self._mask))
            ledger.mark(self._base.client, self._mask, False)
            return moment
        return self._one_by_one(wait, ledger)

    def _one_by_one(self, wait: Wait, ledger: Ledger) -> float:
        if self._order is None:
            rows = np.flatnonzero(~self._mask & np.isfinite(self._base.arrival))
            times, clients = self._base.arrival[rows], self._base.client[rows]
            order = np.lexsort((clients, times))
            self._order, self._times, self._at = rows[order], times[order], 0
        wanted = np.inf if wait.reports is None else wait.reports - self.count
        moment, came, end = wait.until, list[int](), len(self._order)
        while wanted > 0:
            top = self._heap[0] if self._heap else (np.inf, 0, 0)
            if top[0] > wait.until or top[0] == np.inf:
                # No report of the heap is due: the rest comes from the arrays.
                last = int(np.searchsorted(self._times, min(wait.until, 1e308), side="right"))
                last = min(last, self._at + int(wanted) if wanted < np.inf else end)
                rows = self._order[self._at : last]
                self._mask[rows] = True
                came += self._base.client[rows].tolist()
                wanted -= len(rows)
                if wanted == 0 and len(rows):
                    moment = float(self._times[last - 1])
                self._at = last
                break
            if self._at < end:
                row = int(self._order[self._at])
                mine = (float(self._times[self._at]), int(self._base.client[row]), row)
                if mine < top:
                    self._mask[row] = True
                    came.append(mine[1])
                    self._at += 1
                    wanted -= 1
                    moment = mine[0] if wanted == 0 else moment
                    continue
            time, client, row = heapq.heappop(self._heap)
            self._later.append(row)
            came.append(client)
            wanted -= 1
            moment = time if wanted == 0 else moment
        self.count += len(came)
        if came:
            ledger.mark(np.array(came, dtype=np.intp), None, False)
        return moment
