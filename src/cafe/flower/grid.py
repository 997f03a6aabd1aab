"""The way to clients through Flower's Grid: push, pull, and a clock of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence

from flwr.app import ArrayRecord, Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from cafe.flower import messages
from cafe.flower.inbox import Inbox, Letter
from cafe.flower.retry import Busy
from cafe.live.model_layout import Arrays, Layout
from cafe.live.wire import ClientScore, Order, Reply

GRACE = 5.0  # seconds that a message outlives its deadline: one that came just in time is not lost
LIFE = 12 * 3600.0  # of a message whose report is taken whenever it comes

_WORDS = {
    ErrorCode.LOAD_CLIENT_APP_EXCEPTION: "its app could not be loaded",
    ErrorCode.CLIENT_APP_RAISED_EXCEPTION: "its training function failed",
    ErrorCode.MESSAGE_UNAVAILABLE: "its message expired, or was lost by the SuperLink",
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE: "its reply expired",
    ErrorCode.NODE_UNAVAILABLE: "it went away",
    ErrorCode.INVALID_FAB: "it does not trust the app",
    ErrorCode.CLIENT_APP_CRASHED: "its app's process died",
}


class GridWire:
    """A :class:`cafe.live.Wire` on Flower's Grid. Clients are named by their node ids.

    Args:
        grid: of the ServerApp.
        layout: of the model, which says how large a report may be.
        run: which run this is, for clients that keep local models.
        say: told, in a sentence, when the SuperLink does not answer as it should.
    """

    def __init__(
        self, grid: Grid, layout: Layout, run: str, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._grid, self._run = grid, run
        self._most = layout.bytes
        # Each has its own time: a SuperLink that can read and not write must not be borne for ever.
        self._looking, self._pushing = Busy(say), Busy(say)
        self._inbox = Inbox(grid, 2 * layout.bytes + (1 << 20), len(layout.learned), Busy(say))

    @property
    def limited(self) -> bool:
        """Whether a reply that is too large is cut off before it is in memory."""
        return self._inbox.limited

    def present(self) -> Sequence[str]:
        """Who is online, as the SuperLink has it from their heartbeats."""
        return sorted(f"{node}" for node in self._looking.insist(self._grid.get_node_ids))

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """One message each; the model in them is pushed once, and so are vectors they share."""
        record = messages.unforeseen(model)
        shared: dict[int, ArrayRecord] = {}  # by object: the orders keep them alive
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
                ttl=LIFE if order.seconds is None else order.seconds + GRACE,
                group_id=f"{order.round}",
            )
            for order in orders
        ]
        return self._push(ready)

    def request_scores(
        self, clients: Sequence[str], model: Arrays, seconds: float
    ) -> Sequence[str | None]:
        """Ask for evaluation results."""
        record = messages.unforeseen(model)
        ready = [
            Message(
                RecordDict({messages.MODEL: record, messages.ORDER: messages.question(seconds)}),
                int(client),
                MessageType.EVALUATE,
                ttl=seconds + GRACE,
                group_id="evaluate",
            )
            for client in clients
        ]
        return self._push(ready)

    def _push(self, ready: list[Message]) -> Sequence[str | None]:
        if not ready:
            return []
        # The same messages again: what of them has arrived is not sent twice.
        tickets = self._pushing.insist(lambda: list(self._grid.push_messages(ready)))
        return [ticket or None for ticket in tickets] if tickets else [None] * len(ready)

    def receive(self, tickets: Collection[str]) -> Iterator[Reply]:
        """What has come, one by one: no more than one report is in memory twice."""
        return map(self._reply, self._inbox.fetch(tickets))

    def receive_scores(self, tickets: Collection[str]) -> Iterator[ClientScore | Reply]:
        """Evaluation results received so far."""
        for letter in self._inbox.fetch(tickets):
            message, score = letter.message, None
            if message is not None and message.has_content():
                score = messages.score_from(letter.ticket, message.content)
            yield score or Reply(letter.ticket, lost="it sent no evaluation result")

    def _reply(self, letter: Letter) -> Reply:
        ticket, message = letter.ticket, letter.message
        if message is None:
            return Reply(ticket, malformed=letter.malformed, at=letter.at)
        if message.has_error():
            code, reason = message.error.code, message.error.reason or ""
            words = _WORDS.get(code, f"Flower's error {code}")
            more = reason if code == ErrorCode.CLIENT_APP_RAISED_EXCEPTION else ""
            return Reply(ticket, lost=f"{words}{': ' if more else ''}{more[:200]}", at=letter.at)
        try:
            report = messages.report_from(message.content, self._most)
        except messages.MalformedError as error:
            return Reply(ticket, malformed=f"{error}", at=letter.at)
        return Reply(ticket, report, stopped=report is None, at=letter.at)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def clock(self) -> float:
        """A clock that is never set back."""
        return time.monotonic()


def _vectors(order: Order, made: dict[int, ArrayRecord]) -> dict[str, ArrayRecord]:
    """The records of an order's arrays; ``made`` has those of other orders, by object."""
    found = {}
    for name in messages.VECTORS:
        arrays = getattr(order, name)
        if arrays is not None:
            if id(arrays) not in made:
                made[id(arrays)] = messages.unforeseen(arrays)
            found[name] = made[id(arrays)]
    return found
