"""A wire to the clients through Flower's Grid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from flwr.app import ArrayRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from cafe.flower import messages
from cafe.flower.array_records import MalformedError, pack_parts
from cafe.flower.grid_connection import GridConnection, time_to_live
from cafe.flower.inbox import RawReply
from cafe.flower.reply_errors import explain_error
from cafe.live.model_layout import Arrays, Layout
from cafe.live.wire import ClientScore, Order, Reply


class GridWire(GridConnection):
    """A :class:`cafe.live.Wire` on Flower's Grid. Clients are named by their node ids.

    Args:
        grid: the Grid of the ServerApp.
        layout: the model's layout, which limits how large a report may be.
        run: the key of the run, for clients that keep local models.
        say: called with a sentence when the SuperLink answers with an error.
    """

    def __init__(
        self, grid: Grid, layout: Layout, run: str, say: Callable[[str], None] = lambda _: None
    ) -> None:
        # Enough for float64, whatever the model's types: the reason for rejecting a report of a
        # wider type should be its type, not its size.
        self._run, self._max_bytes = run, 8 * layout.size
        super().__init__(grid, self._max_bytes + (1 << 20), len(layout.learned), say)

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """Send each order as a message; the model and shared vectors are uploaded only once."""
        record = pack_parts(model)
        shared: dict[int, ArrayRecord] = {}  # by id(): the orders keep the arrays alive
        ready = [
            Message(
                RecordDict(
                    {
                        messages.MODEL: record,
                        messages.ORDER: messages.order_record(order, self._run),
                        **_vectors(order, shared),
                    }
                ),
                int(order.client),
                MessageType.TRAIN,
                ttl=time_to_live(order.seconds),
                group_id=f"{order.round}",
            )
            for order in orders
        ]
        return self.push(ready)

    def request_scores(
        self, clients: Sequence[str], model: Arrays, seconds: float
    ) -> Sequence[str | None]:
        """Ask for evaluation results."""
        record = pack_parts(model)
        ready = [
            Message(
                RecordDict(
                    {messages.MODEL: record, messages.ORDER: messages.evaluation_record(seconds)}
                ),
                int(client),
                MessageType.EVALUATE,
                ttl=time_to_live(seconds),
                group_id="evaluate",
            )
            for client in clients
        ]
        return self.push(ready)

    def receive(self, tickets: Collection[str]) -> Iterator[Reply]:
        """Yield the replies that have arrived, one by one to save memory."""
        return map(self._read, self.fetch(tickets))

    def receive_scores(self, tickets: Collection[str]) -> Iterator[ClientScore | Reply]:
        """Evaluation results received so far."""
        for raw in self.fetch(tickets):
            message, score = raw.message, None
            if message is not None and message.has_content():
                score = messages.read_score(raw.ticket, message.content)
            yield score or Reply(raw.ticket, lost="it sent no evaluation result")

    def _read(self, raw: RawReply) -> Reply:
        ticket, message = raw.ticket, raw.message
        if message is None:
            return Reply(ticket, malformed=raw.malformed, at=raw.at)
        if message.has_error():
            return Reply(ticket, lost=explain_error(message.error), at=raw.at)
        try:
            report = messages.read_report(message.content, self._max_bytes)
        except MalformedError as error:
            return Reply(ticket, malformed=f"{error}", at=raw.at)
        return Reply(ticket, report, stopped=report is None, at=raw.at)


def _vectors(order: Order, made: dict[int, ArrayRecord]) -> dict[str, ArrayRecord]:
    """The records of an order's arrays; those in ``made``, by ``id()``, are used again."""
    found = {}
    for name in messages.VECTORS:
        arrays = getattr(order, name)
        if arrays is not None:
            if id(arrays) not in made:
                made[id(arrays)] = pack_parts(arrays)
            found[name] = made[id(arrays)]
    return found
