"""Where orders go out and replies come in: one answer to a ticket, as long as it is waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from cafe.live.admission import Admitted, Gate, harmless
from cafe.live.layout import Arrays, Vector
from cafe.live.opened import Open
from cafe.live.records import Record, digest
from cafe.live.roster import Roster
from cafe.live.wire import Order, Reply, Wire
from cafe.rounds.ledger import Ledger


class Desk:
    """Sends orders, and notes what comes of them.

    Args:
        wire: the way to the clients.
        gate: which reports are let in.
        roster: who the clients are.

    Attributes:
        tickets: that may still be answered, with their clients.
        records: of all open jobs, by client.
        arrived: the reports that were let in, by client.
    """

    def __init__(self, wire: Wire, gate: Gate, roster: Roster) -> None:
        self.wire, self.gate, self.roster = wire, gate, roster
        self.tickets: dict[str, int] = {}
        self.records: dict[int, Record] = {}
        self.arrived: dict[int, Admitted] = {}
        self._orders: dict[int, Order] = {}
        self._overheads: deque[float] = deque(maxlen=64)

    @property
    def overhead(self) -> float | None:
        """Seconds of a response that were not training: the median of the last reports."""
        return float(np.median(self._overheads)) if self._overheads else None

    def send(self, orders: Sequence[Order], model: Arrays, now: float) -> list[bool]:
        """Hand over orders: which of them could be."""
        tickets = self.wire.send(orders, model) if orders else []
        for order, ticket in zip(orders, tickets, strict=True):
            k, local = order.number, order.began is not None
            began = order.version if order.began is None else order.began
            self._orders[k] = order
            reason = "it could not be reached" if ticket is None else ""
            self.records[k] = Record(k, order.client, order.round, began, local, now, reason=reason)
            if ticket is not None:
                self.tickets[ticket] = k
        return [ticket is not None for ticket in tickets]

    def replies(self, open_: Open) -> Iterable[Reply]:
        """What has come from those who may still report."""
        alive = set(open_.jobs.client[open_.alive].tolist())
        tickets = [ticket for ticket, k in self.tickets.items() if k in alive]
        return self.wire.receive(tickets) if tickets else []

    def take(
        self,
        open_: Open,
        reply: Reply,
        moment: float,
        until: float,
        model: Vector,
        ledger: Ledger,
    ) -> None:
        """Note what came for a ticket; one that is not known, or known already, is nothing.

        Args:
            open_: the round.
            reply: what came.
            moment: when.
            until: when the round closes: what comes later is of use only where it may come later.
            model: the global model.
            ledger: learns how many examples a client has.
        """
        k = self.tickets.pop(reply.ticket, None)
        row = -1 if k is None else int(np.argmax(open_.jobs.client == k))
        if k is None or not open_.alive[row]:
            return
        open_.jobs.stop[row] = moment
        if moment > until and self._orders[k].seconds is not None:
            return
        reason = harmless(reply.malformed)
        if reply.report is not None and not reason:
            answer = self.gate.judge(reply.report, self._orders[k], model)
            if isinstance(answer, Admitted):
                ledger.examples[k] = answer.examples
                self._let_in(open_, row, answer, moment)
                return
            reason = harmless(answer.reason)
        if reason:
            open_.refused[row] = True
            self.roster.refusals[k] += 1
        if reason or reply.lost:
            open_.jobs.arrival[row] = np.inf
        open_.records[row] = replace(open_.records[row], reason=reason or harmless(reply.lost))

    def _let_in(self, open_: Open, row: int, report: Admitted, moment: float) -> None:
        jobs, record = open_.jobs, open_.records[row]
        k = record.client
        jobs.arrival[row] = moment
        self.arrived[k] = report
        self.roster.labels[k] = report.label or self.roster.labels[k]
        whole = moment - record.start
        took = min(report.took, whole)
        self._overheads.append(whole - took)
        record = replace(record, arrived=moment, digest=digest(report.update), took=round(took, 6))
        if jobs.local[row] and not report.carried:
            jobs.local[row] = False  # it began from the global model instead, and says so
            record = replace(record, carried=False, version=int(jobs.version[row]))
            open_.lost_carries.append(record.name)
        open_.records[row] = record

    def tidy(self, open_: Open, going_on: set[int]) -> None:
        """Forget all but the jobs that run on after a round."""
        self.records = {r.client: r for r in open_.records if r.client in going_on}
        self._orders = {k: order for k, order in self._orders.items() if k in going_on}
        self.arrived = {k: report for k, report in self.arrived.items() if k in going_on}
        self.tickets = {ticket: k for ticket, k in self.tickets.items() if k in going_on}

    def lose(self, record: Record, reason: str) -> None:
        """Note that a job which ran on will not report."""
        self.records[record.client] = replace(record, reason=reason)
