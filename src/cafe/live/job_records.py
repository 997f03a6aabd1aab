"""The jobs of a live run one by one: those of the open round, and the fate of each.

The books count jobs by fate. The records here name each job, and become the lines of
``jobs.jsonl``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from cafe.engine.fates import JobFates, UsedReports
from cafe.latency.base import Floats
from cafe.live.model_layout import Vector
from cafe.live.wire import Report
from cafe.rounds.jobs import Jobs, Mask, Running, Status, Work
from cafe.rounds.outcome import OPEN, Fate, Outcome

REUSED = "reused"
RESTARTED = "the server was restarted"  # the reason of jobs that an earlier server has started
_MERGED = ("fresh", "stale", REUSED)

Key = tuple[int, int]  # a client's number and an invitation's number: they identify a job


@dataclass(frozen=True)
class JobRecord:
    """A job and its fate: a line of ``jobs.jsonl``.

    Attributes:
        client: the client's number in the ledger.
        name: the client's name.
        round: the round in which the job was started.
        version: the version of the global model that its training started from.
        carried: whether it continued from a local model.
        start: when its order was sent.
        arrived: when its report arrived; None if none was accepted.
        fate: in lower case; "" while the job is open. A held report that is used again has a
            further line for each use, "reused", which is not a fate.
        reason: why a report was rejected, or a job lost.
        digest: a hash of the accepted update, of the whole update if it continued from a local
            model.
        booked: the round whose books contain it.
        merged: the version of the model that contains it; None if none does.
        coefficient: its coefficient in that update; None for the earlier jobs of a chain, which
            the last one contains.
        took: seconds of training, as the client reports; the rest of its response time is overhead.
            None if there is no report, or the client does not measure it.
        invitation: the number of the invitation. Client and invitation identify the job.
        steps: gradient steps that were taken, as the client reports.
        work: what it was asked to do, without the defaults of :class:`cafe.rounds.Work`.
        clipped: the factor by which its update was scaled down before the merge; None if it was
            used as it arrived.
    """

    client: int
    name: str
    round: int
    version: int
    carried: bool
    start: float
    arrived: float | None = None
    fate: str = ""
    reason: str = ""
    digest: str = ""
    booked: int = -1
    merged: int | None = None
    coefficient: float | None = None
    took: float | None = None
    invitation: int = -1
    steps: int | None = None
    work: Mapping[str, Any] = field(default_factory=dict)
    clipped: float | None = None

    @property
    def key(self) -> Key:
        """The client's number and the invitation's number."""
        return self.client, self.invitation

    def line(self) -> dict[str, Any]:
        """The record as a line of the log."""
        return asdict(self)


@dataclass(frozen=True)
class Response:
    """A client's response time, as ``cafe fit`` reads it.

    Attributes:
        name: the client's name.
        seconds: how long it took; None if it did not report in time.
        deadline: how long the server waited.
    """

    name: str
    seconds: float | None
    deadline: float | None


@dataclass(frozen=True, eq=False)
class PlayedRound:
    """A round that has been played.

    Attributes:
        outcome: how it ended.
        records: the jobs whose fate it decided.
        responses: the response times of its clients.
        lost_carries: clients that should have continued from a local model and no longer had it.
        spoilt: whether it failed only because its update would have put NaN or infinity into the
            model.
    """

    outcome: Outcome
    records: list[JobRecord]
    responses: list[Response]
    lost_carries: list[str]
    spoilt: bool


@dataclass(eq=False)
class OpenRound:
    """The jobs of the open round, and what is known about them.

    Attributes:
        outcome: the outcome, which is completed when the round closes.
        jobs: all open jobs, those of earlier rounds first. The arrival time in this table is
            infinite until a report is accepted; ``arrived`` says for which jobs one is.
        records: one for each job.
        arrived: the jobs whose report has been accepted.
        reported: the jobs whose report the policy has seen.
        invited: how many jobs were started in this round.
        invitations: how many invitations there were in this round.
        until: when the policy's present wait ends; infinite if it has no deadline.
        lost_carries: clients that should have continued from a local model and no longer had it.
    """

    outcome: Outcome
    jobs: Running
    records: list[JobRecord]
    invited: int = 0
    invitations: int = 0
    until: float = float("inf")
    lost_carries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arrived: Mask = np.isfinite(self.jobs.arrival)
        self.reported: Mask = np.zeros(len(self.jobs), dtype=bool)
        self._rows = {record.key: row for row, record in enumerate(self.records)}

    def add(self, new: Running, records: list[JobRecord]) -> None:
        """Add the jobs of an invitation."""
        for record in records:
            self._rows[record.key] = len(self.records)
            self.records.append(record)
        self.jobs = self.jobs.then(new)
        none = np.zeros(len(new), dtype=bool)
        self.arrived = np.concatenate([self.arrived, none])
        self.reported = np.concatenate([self.reported, none])
        self.invited += len(new)
        self.invitations += 1

    def accept(self, row: int, report: Report, moment: float) -> None:
        """Note that a job's report has arrived and is accepted."""
        jobs, record = self.jobs, self.records[row]
        assert report.vector is not None
        took = None if report.took is None else min(report.took, moment - record.start)
        self.arrived[row] = True
        jobs.arrival[row] = jobs.stop[row] = moment
        jobs.trained[row] = np.nan if took is None else took
        if report.steps is not None:
            jobs.steps[row] = report.steps
        if jobs.local[row] and not report.carried:
            jobs.local[row] = False  # the client reports that it started from the global model
            record = replace(record, carried=False, version=int(jobs.version[row]))
            self.lost_carries.append(record.name)
        self.records[row] = replace(
            record,
            arrived=moment,
            digest=digest(report.vector),
            took=None if took is None else round(took, 6),
            steps=report.steps,
        )

    def end(self, row: int, status: Status, moment: float, reason: str = "") -> None:
        """Note that a job will not report."""
        self.jobs.stop[row], self.jobs.status[row] = moment, status
        if reason:
            self.records[row] = replace(self.records[row], reason=reason)

    def row(self, key: Key) -> int | None:
        """The row of a job; None if the round does not have it."""
        return self._rows.get(key)

    def answered(self) -> dict[int, tuple[int, ...]]:
        """The invitations that each client has answered in this round."""
        found: dict[int, tuple[int, ...]] = {}
        for row in np.flatnonzero(self.reported).tolist():
            record = self.records[row]
            found[record.client] = (*found.get(record.client, ()), record.invitation)
        return found

    def look(self) -> tuple[Jobs, Floats]:
        """The jobs that have reported, as decisions may see them, and their arrival times."""
        jobs = self.jobs.take(np.flatnonzero(self.reported))
        return jobs.visible(), jobs.arrival

    def arrived_by(self, moment: float) -> Mask:
        """The jobs whose report arrived by a moment."""
        by_then: Mask = self.arrived & (self.jobs.arrival <= moment)
        return by_then

    @property
    def awaited(self) -> Mask:
        """The jobs that may still report."""
        awaited: Mask = ~self.arrived & (self.jobs.status == Status.EXPECTED)
        return awaited

    @property
    def lost(self) -> int:
        """How many jobs are known never to report."""
        return int(np.count_nonzero(self.jobs.status != Status.EXPECTED))

    def responses(self, fates: JobFates, now: float) -> list[Response]:
        """The response times of the round, which closes now.

        The response time of a job that keeps running is included when the job ends.
        """
        found = []
        for row, record in enumerate(self.records):
            runs = fates.by_job[row] == OPEN and not self.reported[row]
            if runs or fates.by_job[row] in (Fate.CRASHED, Fate.REFUSED, Fate.ABSENT):
                continue
            waited = min(self.until, now) - record.start
            if not waited > 0:  # a round of zero length carries no information
                continue
            took = None if record.arrived is None else _microseconds(record.arrived - record.start)
            found.append(Response(record.name, took, _microseconds(waited)))
        return found


@dataclass(eq=False)
class KeptRecords:
    """The records of jobs whose report or local model the policy keeps.

    Attributes:
        chains: the jobs without a fate, by client.
        held: by client, the last record of a kept report that a merge has used.
    """

    chains: dict[int, list[JobRecord]] = field(default_factory=dict)
    held: dict[int, JobRecord] = field(default_factory=dict)

    def settle(self, open_: OpenRound, used: UsedReports, fates: JobFates) -> list[JobRecord]:
        """The records whose fate a closed round decides; merged ones in the order of the merge.

        Args:
            open_: the round, booked.
            used: the reports in the update.
            fates: the fates that the books gave.
        """
        written: list[JobRecord] = []
        outcome, fresh = open_.outcome, len(used.jobs)
        by_row = dict(zip(used.jobs.tolist(), used.coefficient[:fresh].tolist(), strict=True))
        by_client = dict(zip(used.held.tolist(), used.coefficient[fresh:].tolist(), strict=True))
        earlier = {
            client: Fate(fate)
            for clients, codes in fates.earlier
            for client, fate in zip(clients.tolist(), codes.tolist(), strict=True)
        }

        def end(record: JobRecord, fate: Fate | str, coefficient: float | None = None) -> None:
            name = fate.name.lower() if isinstance(fate, Fate) else fate
            more: dict[str, Any] = {"fate": name, "booked": outcome.round}
            if name in _MERGED:
                more |= {"merged": outcome.version, "coefficient": coefficient}
            written.append(replace(record, **more))

        def end_chain(client: int, coefficient: float | None = None) -> None:
            chain = self.chains.pop(client, [])
            for record in chain:
                end(record, earlier[client], coefficient if record is chain[-1] else None)

        for row, record in enumerate(open_.records):
            fate, client = int(fates.by_job[row]), record.client
            if row in by_row:
                if open_.jobs.local[row] and client in earlier:
                    end_chain(client)
                end(record, Fate(fate), by_row[row])
            elif fate != OPEN:
                end(record, Fate(fate))
        for client, coefficient in by_client.items():
            if self.chains.get(client):
                self.held[client] = self.chains[client][-1]
                end_chain(client, coefficient)
            else:
                end(self.held[client], REUSED, coefficient)
        for client in earlier:
            end_chain(client)
        for row in sorted(set(fates.kept.tolist())):
            record = open_.records[row]
            if fates.by_job[row] == OPEN:
                self.chains.setdefault(record.client, []).append(record)
                self.held.pop(record.client, None)
            else:
                self.held[record.client] = record
        return written

    def forget(self, keeping: Mask) -> None:
        """Delete the records of clients that keep nothing."""
        self.held = {client: record for client, record in self.held.items() if keeping[client]}


def changed_fields(work: Work) -> dict[str, Any]:
    """The fields of a work that differ from the defaults."""
    return {name: value for name, value in vars(work).items() if value != getattr(Work, name)}


def digest(vector: Vector) -> str:
    """A short hash of an update or a model. In practice it is equal only if all bits are equal."""
    return hashlib.sha256(np.ascontiguousarray(vector).tobytes()).hexdigest()[:16]


def count_fates(records: Sequence[JobRecord]) -> Mapping[str, int]:
    """How many records have each fate."""
    counts = {fate.name.lower(): 0 for fate in Fate}
    for record in records:
        if record.fate != REUSED:
            counts[record.fate] += 1
    return counts


def _microseconds(seconds: float) -> float:
    """A duration rounded to the microsecond, as in the file; at least one microsecond."""
    return max(round(seconds, 6), 1e-6)
