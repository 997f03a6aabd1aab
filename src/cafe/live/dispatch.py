"""Where orders go out and replies come in: one answer to a ticket, as long as it is waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from cafe.engine.books import Books
from cafe.live.job_records import JobRecord, digest, stated
from cafe.live.model_layout import Arrays, Vector
from cafe.live.open_round import Key, OpenRound
from cafe.live.roster import ClientRegistry
from cafe.live.validation import Admitted, ReportValidator, harmless
from cafe.live.wire import Order, Reply, Wire
from cafe.rounds.jobs import Status
from cafe.rounds.ledger import UNKNOWN

UNREACHED = "it could not be reached"


class Dispatcher:
    """Sends orders, and notes what comes of them.

    Args:
        wire: the way to the clients.
        validator: which reports are let in.
        clients: who the clients are.

    Attributes:
        tickets: that may still be answered, with the jobs that they were given for.
        arrived: the reports that were let in, by job.
    """

    def __init__(self, wire: Wire, validator: ReportValidator, clients: ClientRegistry) -> None:
        self.wire, self.validator, self.clients = wire, validator, clients
        self.tickets: dict[str, Key] = {}
        self.arrived: dict[Key, Admitted] = {}
        self._orders: dict[Key, Order] = {}
        self._overheads: deque[float] = deque(maxlen=64)

    @property
    def overhead(self) -> float | None:
        """Seconds of a response that were not training: the median of the last reports."""
        return float(np.median(self._overheads)) if self._overheads else None

    @property
    def reserve(self) -> float:
        """Seconds of a response that are not training: the 90 % quantile of the last reports."""
        return float(np.quantile(self._overheads, 0.9)) if self._overheads else 0.0

    def send(self, orders: Sequence[Order], model: Arrays, now: float) -> list[JobRecord]:
        """Send orders: a record of each, with the reason if it could not be sent."""
        tickets = self.wire.send(orders, model) if orders else []
        records = []
        for order, ticket in zip(orders, tickets, strict=True):
            key = (order.number, order.invitation)
            began = order.version if order.began is None else order.began
            record = JobRecord(
                client=order.number,
                name=order.client,
                round=order.round,
                version=began,
                carried=order.began is not None,
                start=now,
                reason=UNREACHED if ticket is None else "",
                invitation=order.invitation,
                work=stated(order.work),
            )
            records.append(record)
            # What came of an order is judged without its offset, which may be large.
            self._orders[key] = order if order.offset is None else replace(order, offset=None)
            if ticket is not None:
                self.tickets[ticket] = key
        return records

    def replies(self, open_: OpenRound) -> Iterable[Reply]:
        """What has come from those who may still report."""
        rows = np.flatnonzero(open_.alive).tolist()
        alive = {(open_.records[row].client, open_.records[row].invitation) for row in rows}
        tickets = [ticket for ticket, key in self.tickets.items() if key in alive]
        return self.wire.receive(tickets) if tickets else []

    def take(
        self,
        open_: OpenRound,
        reply: Reply,
        moment: float,
        until: float,
        model: Vector,
        books: Books,
        needs: frozenset[str],
    ) -> None:
        """Note what came for a ticket; one that is not known, or known already, is nothing.

        Args:
            open_: the round.
            reply: what came.
            moment: when.
            until: when the round closes: what comes later is of use only where it may come later.
            model: the global model.
            books: learn how many examples a client has.
            needs: what the policy must know.
        """
        key = self.tickets.pop(reply.ticket, None)
        row = None if key is None else open_.row(key)
        if key is None or row is None or not open_.alive[row]:
            return
        jobs = open_.jobs
        jobs.stop[row] = moment
        if moment > until and self._orders[key].seconds is not None:
            jobs.status[row] = Status.STOPPED
            return
        reason = harmless(reply.malformed)
        if reply.report is not None and not reason:
            answer = self.validator.judge(reply.report, self._orders[key], model, needs)
            if isinstance(answer, Admitted):
                if answer.examples != UNKNOWN:
                    books.columns.examples[key[0]] = answer.examples
                self._let_in(open_, row, answer, moment)
                return
            reason = harmless(answer.reason)
        status = Status.REFUSED if reason else Status.CRASHED if reply.lost else Status.STOPPED
        jobs.status[row] = status
        if reason:
            self.clients.refusals[key[0]] += 1
        open_.records[row] = replace(open_.records[row], reason=reason or harmless(reply.lost))

    def _let_in(self, open_: OpenRound, row: int, report: Admitted, moment: float) -> None:
        jobs, record = open_.jobs, open_.records[row]
        k = record.client
        jobs.arrival[row] = moment
        self.arrived[k, record.invitation] = report
        self.clients.labels[k] = report.label or self.clients.labels[k]
        whole = moment - record.start
        took = min(report.took, whole)
        jobs.trained[row] = took
        if report.steps is not None:
            jobs.steps[row] = report.steps
        self._overheads.append(whole - took)
        record = replace(
            record,
            arrived=moment,
            digest=digest(report.update),
            took=round(took, 6),
            steps=report.steps,
        )
        if jobs.local[row] and not report.carried:
            jobs.local[row] = False  # it began from the global model instead, and says so
            record = replace(record, carried=False, version=int(jobs.version[row]))
            open_.lost_carries.append(record.name)
        open_.records[row] = record

    def upload(self, record: JobRecord) -> float:
        """The size of a job's report, as a share of the model's."""
        return self._orders[record.client, record.invitation].work.upload

    def tidy(self, going_on: set[Key]) -> None:
        """Forget all but the jobs that run on after a round."""
        self._orders = {key: order for key, order in self._orders.items() if key in going_on}
        self.arrived = {key: report for key, report in self.arrived.items() if key in going_on}
        self.tickets = {ticket: key for ticket, key in self.tickets.items() if key in going_on}
