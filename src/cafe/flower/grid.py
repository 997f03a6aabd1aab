"""The way to clients through Flower's Grid: push, pull, and a clock of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from flwr.app import Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from cafe.flower import messages
from cafe.flower.inbox import Inbox, Letter
from cafe.live.layout import Arrays, Layout
from cafe.live.wire import Opinion, Order, Reply

GRACE = 5.0  # seconds that a message outlives its deadline: one that came just in time is not lost
PATIENCE = 60.0  # seconds for which the SuperLink may answer with nothing but errors
LIFE = 12 * 3600.0  # of a message whose report is taken whenever it comes

T = TypeVar("T")
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
    """

    def __init__(self, grid: Grid, layout: Layout, run: str) -> None:
        self._grid, self._run = grid, run
        self._most = layout.bytes
        self._inbox = Inbox(grid, 2 * layout.bytes + (1 << 20))
        self._here: list[str] = []
        self._failing: float | None = None  # since when the SuperLink answers with errors

    @property
    def limited(self) -> bool:
        """Whether a reply that is too large is cut off before it is in memory."""
        return self._inbox.limited

    def present(self) -> Sequence[str]:
        """Who is online, as the SuperLink has it from their heartbeats."""

        def look() -> list[str]:
            return sorted(f"{node}" for node in self._grid.get_node_ids())

        self._here = self._patient(look, self._here)
        return self._here

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """One message each; the model in them is pushed once."""
        record = messages.unforeseen(model)
        ready = [
            Message(
                RecordDict(
                    {
                        messages.MODEL: record,
                        messages.ORDER: messages.order_record(order, self._run),
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

    def ask(self, clients: Sequence[str], model: Arrays, seconds: float) -> Sequence[str | None]:
        """Ask for opinions."""
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
        nothing: list[str] = []
        tickets = self._patient(lambda: list(self._grid.push_messages(ready)), nothing)
        return [ticket or None for ticket in tickets] if tickets else [None] * len(ready)

    def receive(self, tickets: Collection[str]) -> Iterator[Reply]:
        """What has come, one by one: no more than one report is in memory twice."""
        return map(self._reply, self._letters(tickets))

    def hear(self, tickets: Collection[str]) -> Iterator[Opinion | Reply]:
        """Opinions that have come."""
        for letter in self._letters(tickets):
            message, opinion = letter.message, None
            if message is not None and message.has_content():
                opinion = messages.opinion_from(letter.ticket, message.content)
            yield opinion or Reply(letter.ticket, lost="it has no opinion")

    def _letters(self, tickets: Collection[str]) -> Iterator[Letter]:
        letters = self._inbox.fetch(tickets)
        while (letter := self._patient(lambda: next(letters, None), None)) is not None:
            yield letter

    def _patient(self, ask: Callable[[], T], otherwise: T) -> T:
        """Ask the SuperLink; any client can keep it so busy that it answers with an error."""
        try:
            answer = ask()
        except Exception as error:  # of whatever library it is that Flower uses
            status = getattr(getattr(error, "response", None), "status_code", 0)
            self._failing = self._failing or self.clock()
            if status < 500 or self.clock() > self._failing + PATIENCE:
                raise
            return otherwise
        self._failing = None
        return answer

    def _reply(self, letter: Letter) -> Reply:
        ticket, message = letter.ticket, letter.message
        if message is None:
            return Reply(ticket, malformed=letter.malformed)
        if message.has_error():
            code, reason = message.error.code, message.error.reason or ""
            words = _WORDS.get(code, f"Flower's error {code}")
            more = reason if code == ErrorCode.CLIENT_APP_RAISED_EXCEPTION else ""
            return Reply(ticket, lost=f"{words}{': ' if more else ''}{more[:200]}")
        try:
            report = messages.report_from(message.content, self._most)
        except messages.MalformedError as error:
            return Reply(ticket, malformed=f"{error}")
        return Reply(ticket, report, stopped=report is None)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def clock(self) -> float:
        """A clock that is never set back."""
        return time.monotonic()
