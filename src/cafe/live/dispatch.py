"""Sends orders and receives replies: the clients of a run, their orders, one reply per ticket."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cafe.engine.books import Books
from cafe.live.job_records import JobRecord, Key, OpenRound, changed_fields
from cafe.live.model_layout import Arrays, Layout
from cafe.live.validation import RejectedReportError, ReportValidator, clean_message
from cafe.live.wire import Order, Reply, Report, Wire
from cafe.rounds.client_vectors import JobVectors
from cafe.rounds.jobs import Invitation, Mask, Running, Status, Work
from cafe.rounds.ledger import UNKNOWN, Ledger
from cafe.rounds.policy import Policy

UNREACHABLE = "it could not be reached"


@dataclass(eq=False)
class ClientRegistry:
    """All clients that were ever present, each with a fixed number in the ledger.

    Attributes:
        names: their names on the wire, in the order of the ledger.
        labels: their names for people, which are never used in decisions.
        refusals: how many messages of each were rejected.
        clips: how many updates of each were clipped.
    """

    names: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    clips: list[int] = field(default_factory=list)

    def update(self, present: Sequence[str], books: Books) -> tuple[list[str], list[str]]:
        """Record which clients are present.

        Returns:
            The names of the clients that have joined, and of those that have left, since the last
            call.
        """
        known = set(self.names)
        self.admit([name for name in dict.fromkeys(present) if name not in known], books)
        here = set(present)
        away = np.array([name not in here for name in self.names], dtype=bool)
        before = books.columns.away
        left = [self.names[k] for k in np.flatnonzero(away & ~before)]
        joined = [self.names[k] for k in np.flatnonzero(~away & before)]
        books.ledger.set_away(away)
        return joined, left

    def admit(self, new: Sequence[str], books: Books) -> None:
        """Add clients. Their age begins now, and they are away until :meth:`update`."""
        if not new:
            return
        books.admit(np.full(len(new), UNKNOWN))
        self.names += new
        self.labels += [""] * len(new)
        self.refusals += [0] * len(new)
        self.clips += [0] * len(new)
        books.columns.away[-len(new) :] = True

    def display_name(self, name: str) -> str:
        """A client's name for people."""
        label = self.labels[self.names.index(name)] if name in self.names else ""
        return label or f"client {name}"


class Dispatcher:
    """Sends orders, and records the reply to each.

    Args:
        wire: the connection to the clients.
        validator: accepts or rejects reports.
        clients: the clients' names.
        books: the run's books.
        seed: the run's seed.

    Attributes:
        tickets: the tickets that may still be answered, and the job of each.
        accepted: the accepted reports, by job.
    """

    def __init__(
        self,
        wire: Wire,
        validator: ReportValidator,
        clients: ClientRegistry,
        books: Books,
        seed: int,
    ) -> None:
        self.wire, self.validator, self.clients = wire, validator, clients
        self._books, self._seed = books, seed
        self.tickets: dict[str, Key] = {}
        self.accepted: dict[Key, Report] = {}
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

    def make_orders(
        self, policy: Policy, invitation: Invitation, local: Mask, open_: OpenRound
    ) -> list[Order]:
        """The orders of an invitation.

        Args:
            policy: the policy of the round.
            invitation: which clients are invited, and for which work.
            local: which of the clients continue from their local models.
            open_: the round.
        """
        answered = open_.answered()
        clients, works = invitation.clients.tolist(), work_of_each(invitation)
        return [
            self._make_order(policy, k, work, continues, answered.get(k, ()))
            for k, work, continues in zip(clients, works, local.tolist(), strict=True)
        ]

    def _make_order(
        self, policy: Policy, k: int, work: Work, continues: bool, answered: tuple[int, ...]
    ) -> Order:
        kept, ledger = self._books.kept, self._books.ledger
        seconds = None
        if policy.deadline is not None and policy.late == "drop":
            seconds = ledger.opened + policy.deadline - ledger.now
        carry = "local models" in policy.needs
        keeps = answered if carry else ()
        if carry and ledger.local[k]:
            keeps = (int(kept.invitation[k]), *keeps)
        return Order(
            client=self.clients.names[k],
            number=k,
            round=ledger.round,
            version=ledger.version,
            seed=self._seed,
            work=work,
            seconds=seconds,
            carry=carry,
            after=int(kept.invitation[k]) if continues else None,
            began=int(kept.version[k]) if continues else None,
            invitation=ledger.invitations,
            reserve=self.reserve if work.partial else 0.0,
            keeps=keeps,
        )

    def records(self, orders: Sequence[Order]) -> list[JobRecord]:
        """A record of each job that is about to start."""
        return [
            JobRecord(
                client=order.number,
                name=order.client,
                round=order.round,
                version=order.version if order.began is None else order.began,
                carried=order.began is not None,
                start=self._books.ledger.now,
                invitation=order.invitation,
                work=changed_fields(order.work),
            )
            for order in orders
        ]

    def send(
        self, orders: Sequence[Order], records: Sequence[JobRecord], model: Arrays
    ) -> list[JobRecord]:
        """Send orders, and return their records, with a reason if one could not be sent."""
        tickets = self.wire.send(orders, model) if orders else []
        sent = []
        for order, record, ticket in zip(orders, records, tickets, strict=True):
            sent.append(record if ticket is not None else replace(record, reason=UNREACHABLE))
            # Replies are checked against the order without its offset, which may be large.
            self._orders[record.key] = (
                order if order.offset is None else replace(order, offset=None)
            )
            if ticket is not None:
                self.tickets[ticket] = record.key
        return sent

    def replies(self, open_: OpenRound) -> Iterable[Reply]:
        """What has arrived for jobs that may still report."""
        awaited = {open_.records[row].key for row in np.flatnonzero(open_.awaited).tolist()}
        tickets = [ticket for ticket, key in self.tickets.items() if key in awaited]
        return self.wire.receive(tickets) if tickets else []

    def note_reply(
        self,
        open_: OpenRound,
        reply: Reply,
        moment: float,
        needs: frozenset[str],
    ) -> None:
        """Record the reply to a job. Replies with unknown or repeated tickets are ignored.

        Args:
            open_: the round.
            reply: what arrived.
            moment: when it arrived.
            needs: what the policy must know.
        """
        key = self.tickets.pop(reply.ticket, None)
        row = None if key is None else open_.row(key)
        if key is None or row is None or not open_.awaited[row]:
            return
        order = self._orders[key]
        if moment > open_.until and order.seconds is not None:
            open_.end(row, Status.STOPPED, moment)
        elif reply.malformed:
            self._reject(open_, row, moment, reply.malformed)
        elif reply.report is not None:
            try:
                report = self.validator.validate(reply.report, order, needs)
            except RejectedReportError as error:
                self._reject(open_, row, moment, f"{error}")
            else:
                self._accept(open_, row, moment, report)
        else:
            status = Status.CRASHED if reply.lost else Status.STOPPED
            open_.end(row, status, moment, clean_message(reply.lost))

    def _reject(self, open_: OpenRound, row: int, moment: float, reason: str) -> None:
        self.clients.refusals[open_.records[row].client] += 1
        open_.end(row, Status.REFUSED, moment, clean_message(reason))

    def _accept(self, open_: OpenRound, row: int, moment: float, report: Report) -> None:
        record = open_.records[row]
        k = record.client
        if report.examples is not None:
            self._books.columns.examples[k] = report.examples
        self.accepted[record.key] = report
        self.clients.labels[k] = report.label or self.clients.labels[k]
        if report.took is not None:
            response = moment - record.start
            self._overheads.append(response - min(report.took, response))
        open_.accept(row, report, moment)

    def upload(self, record: JobRecord) -> float:
        """The size of a job's report, as a share of the model's."""
        return self._orders[record.key].work.upload

    def forget(self, running: set[Key]) -> None:
        """Delete all jobs except those that keep running after a round."""
        self._orders = {key: order for key, order in self._orders.items() if key in running}
        self.accepted = {key: report for key, report in self.accepted.items() if key in running}
        self.tickets = {ticket: key for ticket, key in self.tickets.items() if key in running}


def work_of_each(invitation: Invitation) -> list[Work]:
    """What each of the invited clients is asked to do."""
    work, n = invitation.work, len(invitation.clients)
    if invitation.amount is None:
        return [work] * n
    unit = "seconds" if work.seconds is not None else "epochs" if work.epochs else "steps"
    return [replace(work, **{unit: amount}) for amount in invitation.amount.tolist()]


def attach_vectors(orders: list[Order], vectors: JobVectors, layout: Layout) -> list[Order]:
    """The orders with the offsets and the frozen parameters of their clients."""
    parts = layout.parts
    frozen = None if vectors.frozen is None else parts(vectors.frozen)
    # One object for all clients: a wire sends it once.
    common = None if vectors.common is None else parts(vectors.common)
    found = []
    for order in orders:
        offset = common
        if order.number in vectors.own:
            vector = vectors.offset(order.number)
            offset = None if vector is None else parts(vector)
        found.append(replace(order, offset=offset, frozen=frozen))
    return found


def new_jobs(
    ledger: Ledger, invitation: Invitation, orders: list[Order], records: list[JobRecord]
) -> Running:
    """The engine's table of the jobs of an invitation whose orders have been sent."""
    n, works = len(orders), [order.work for order in orders]
    lost = np.array([bool(record.reason) for record in records], dtype=bool)
    steps = [work.steps if work.epochs is None is work.seconds else 0 for work in works]
    return Running(
        client=invitation.clients,
        start=np.full(n, ledger.now),
        version=np.full(n, ledger.version, dtype=np.int64),
        round=np.full(n, ledger.round, dtype=np.int64),
        local=np.array([order.after is not None for order in orders], dtype=bool),
        invitation=np.full(n, ledger.invitations, dtype=np.int64),
        steps=np.array(steps, dtype=np.int64),
        note=np.zeros(n) if invitation.note is None else invitation.note,
        arrival=np.full(n, np.inf),  # the engine's value for a report that has not arrived
        stop=np.full(n, np.inf),
        status=np.where(lost, Status.ABSENT, Status.EXPECTED).astype(np.int8),
        trained=np.zeros(n),
    )
