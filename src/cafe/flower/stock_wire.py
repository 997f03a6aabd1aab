"""A wire to unchanged ClientApps, which speak Flower's usual messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from cafe.flower import stock_messages
from cafe.flower.array_records import MalformedError
from cafe.flower.grid_connection import GridConnection, time_to_live
from cafe.flower.inbox import RawReply
from cafe.flower.messages import make_nonce
from cafe.flower.reply_errors import explain_error
from cafe.flower.stock_messages import RecordKeys, TrainedReply
from cafe.flower.stock_policy import check_order
from cafe.live.job_records import JobRecord
from cafe.live.model_layout import Arrays, Layout
from cafe.live.wire import ClientScore, Order, Reply, Report

Configure = Callable[[int], ConfigRecord]


class _Sent(NamedTuple):
    """An order, and the model that was sent with it."""

    order: Order
    model: Arrays


class StockWire(GridConnection):
    """A :class:`cafe.live.Wire` on Flower's Grid to ClientApps that do not know CAFe.

    A reply does not repeat what was asked, so its ticket identifies the order that it answers. An
    update is the difference between the returned arrays and those that were sent.

    Args:
        grid: the Grid of the ServerApp.
        layout: the model's layout, which limits how large a report may be.
        keys: the keys of records.
        train_config: the configuration of training messages, by the number of the model's round.
        evaluate_config: the configuration of evaluation messages.
        say: called with a sentence when the SuperLink answers with an error.

    Attributes:
        server_round: the round in the configuration of evaluation messages.
        evaluations: the replies to evaluation messages, by ticket.
    """

    def __init__(
        self,
        grid: Grid,
        layout: Layout,
        keys: RecordKeys,
        train_config: Configure,
        evaluate_config: ConfigRecord,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(grid, stock_messages.max_message_bytes(layout), len(layout.shapes), say)
        self._layout, self._keys = layout, keys
        self._train_config, self._evaluate_config = train_config, evaluate_config
        self._sent: dict[str, _Sent] = {}  # by ticket
        self._replies: dict[tuple[int, int], TrainedReply] = {}  # by client and invitation
        self.server_round = 0
        self.evaluations: dict[str, RecordDict] = {}

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """Send each order as a training message; the model is uploaded only once."""
        for order in orders:
            check_order(order)
        first = orders[0]
        config = self._train_config(first.version + 1)
        config[stock_messages.ROUND] = first.version + 1
        if first.seconds is not None:
            config.setdefault(stock_messages.DEADLINE, first.seconds)
        clients = [order.client for order in orders]
        tickets = self._post(clients, model, config, MessageType.TRAIN, first.seconds)
        for order, ticket in zip(orders, tickets, strict=True):
            if ticket is not None:
                self._sent[ticket] = _Sent(order, model)
        return tickets

    def request_scores(
        self, clients: Sequence[str], model: Arrays, seconds: float
    ) -> Sequence[str | None]:
        """Send an evaluation message to each client."""
        config = ConfigRecord({**self._evaluate_config})
        config[stock_messages.ROUND] = self.server_round
        return self._post(clients, model, config, MessageType.EVALUATE, seconds)

    def _post(
        self,
        clients: Sequence[str],
        model: Arrays,
        config: ConfigRecord,
        kind: str,
        seconds: float | None,
    ) -> Sequence[str | None]:
        arrays = stock_messages.pack_model(model)
        content = RecordDict({self._keys.arrays: arrays, self._keys.config: config})
        # The nonce makes the message's id unpredictable: no other client can answer it.
        ready = [
            Message(
                content,
                int(client),
                kind,
                ttl=time_to_live(seconds),
                group_id=f"{config[stock_messages.ROUND]!s}-{make_nonce()}",
            )
            for client in clients
        ]
        return self.push(ready)

    def receive(self, tickets: Collection[str]) -> Iterator[Reply]:
        """Yield the replies that have arrived, one by one to save memory."""
        self._sent = {ticket: sent for ticket, sent in self._sent.items() if ticket in tickets}
        return map(self._read, self.fetch(tickets))

    def _read(self, raw: RawReply) -> Reply:
        ticket, message, sent = raw.ticket, raw.message, self._sent.pop(raw.ticket, None)
        if message is None or sent is None:
            return Reply(ticket, malformed=raw.malformed or "it answers no order", at=raw.at)
        if message.has_error():
            return Reply(ticket, lost=explain_error(message.error), at=raw.at)
        try:
            reply = stock_messages.read_trained(
                message.content, sent.model, self._layout, self._keys
            )
        except MalformedError as error:
            return Reply(ticket, malformed=f"{error}", at=raw.at)
        order = sent.order
        self._replies[order.number, order.invitation] = reply
        report = Report(
            reply.update, order.invitation, order.version, examples=reply.examples, took=None
        )
        return Reply(ticket, report, at=raw.at)

    def take_merged(self, records: Iterable[JobRecord]) -> list[tuple[TrainedReply, float]]:
        """The replies of merged jobs, with their coefficients; those of all records are deleted."""
        found = []
        for record in records:
            reply = self._replies.pop(record.key, None)
            if reply is not None and record.merged is not None:
                found.append((reply, record.coefficient or 0.0))
        return found

    def receive_scores(self, tickets: Collection[str]) -> Iterator[ClientScore | Reply]:
        """Evaluation results received so far; their metrics are in ``evaluations``."""
        for raw in self.fetch(tickets):
            message = raw.message
            if message is None:
                yield Reply(raw.ticket, lost=raw.malformed)
            elif message.has_error():
                yield Reply(raw.ticket, lost=explain_error(message.error))
            else:
                yield self._read_score(raw.ticket, message.content)

    def _read_score(self, ticket: str, content: RecordDict) -> ClientScore | Reply:
        try:
            metrics, examples = stock_messages.read_metrics(content, self._keys)
        except MalformedError as error:
            return Reply(ticket, lost=f"{error}")
        self.evaluations[ticket] = metrics
        return ClientScore(ticket, np.nan, None, examples)
