"""A Grid in memory and in virtual time, whose clients are stock ClientApps in this process."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flwr.app import (
    Array,
    ArrayRecord,
    Context,
    Error,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.app.message import make_message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from tests.support.flower.reports import send_through

Delay = Callable[[int, Message], float | None]


def stock_app(
    train: Callable[[dict[str, Any], Any, Context], tuple[dict[str, Any], dict[str, Any]]],
    evaluate: Callable[[dict[str, Any], Any, Context], dict[str, Any]] | None = None,
    arrays: str = "arrays",
    config: str = "config",
) -> ClientApp:
    """A ClientApp with Flower's usual messages, around functions of arrays and configuration."""
    app = ClientApp()

    def model_of(message: Message) -> dict[str, Any]:
        record = message.content.array_records[arrays]
        return {name: array.numpy() for name, array in record.items()}

    @app.train()
    def on_train(message: Message, context: Context) -> Message:
        model, metrics = train(model_of(message), message.content[config], context)
        content = RecordDict({"arrays": named_arrays(model), "metrics": MetricRecord(metrics)})
        return Message(content, reply_to=message)

    if evaluate is not None:

        @app.evaluate()
        def on_evaluate(message: Message, context: Context) -> Message:
            metrics = evaluate(model_of(message), message.content[config], context)
            return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

    return app


def named_arrays(arrays: dict[str, Any]) -> ArrayRecord:
    """An ArrayRecord with the names of the arrays."""
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


class StockGrid(Grid):
    """Nodes 1 to ``nodes``. Each reply arrives after a delay in virtual time.

    Args:
        app: the ClientApp of all nodes; the context has the node's number as ``partition-id``.
        nodes: their number.
        delay: from a node and a message to the seconds until its reply; None: it never arrives.
    """

    def __init__(
        self, app: ClientApp, nodes: int, delay: Delay = lambda node, message: 1.0
    ) -> None:
        self.app, self.nodes, self.delay = app, nodes, delay
        self.now = 100.0
        self.sent: list[Message] = []
        self._due: dict[str, tuple[float, Message]] = {}
        self._events: list[float] = []

    def install(self, patch: pytest.MonkeyPatch) -> StockGrid:
        """Make wires use the virtual clock."""
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        patch.setattr("cafe.flower.grid_connection.time", clock)
        return self

    def sleep(self, seconds: float) -> None:
        """Advance the time to the next reply, by at most ``seconds`` and by more than 0."""
        while self._events and self._events[0] <= self.now:
            heapq.heappop(self._events)
        until = min([self.now + seconds, *self._events[:1]])
        self.now = max(until, float(np.nextafter(self.now, np.inf)))

    def configs(self, kind: str = MessageType.TRAIN) -> list[dict[str, Any]]:
        """The configurations of all messages of a kind."""
        return [
            dict(message.content["config"])
            for message in self.sent
            if message.metadata.message_type == kind
        ]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        tickets = []
        for message in messages:
            ticket = f"{len(self.sent):06d}"
            vars(message.metadata)["_message_id"] = ticket
            self.sent.append(message)
            tickets.append(ticket)
            after = self.delay(message.metadata.dst_node_id, message)
            if after is not None:
                self._due[ticket] = (self.now + after, self._reply(message))
                heapq.heappush(self._events, self.now + after)
        return tickets

    def _reply(self, message: Message) -> Message:
        node = message.metadata.dst_node_id
        context = Context(1, node, {"partition-id": node}, RecordDict(), {})
        received = make_message(message.metadata, send_through(message.content))
        try:
            reply = self.app(received, context)
        except Exception as error:
            failed = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, f"{error}")
            return Message(failed, reply_to=message)
        reply.content = send_through(reply.content)
        return reply

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        found = [t for t in message_ids if t in self._due and self._due[t][0] <= self.now]
        return [self._due.pop(ticket)[1] for ticket in found]

    def get_node_ids(self) -> list[int]:
        return [*range(1, self.nodes + 1)]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        """All replies, without delays: for Flower's own strategies."""
        return [self._reply(message) for message in messages]

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        return SimpleNamespace(run_id=7)

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError
