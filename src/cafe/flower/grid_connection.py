"""The connection to Flower's Grid that all wires share: nodes, messages and replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError

from cafe.flower.inbox import Inbox, RawReply
from cafe.flower.retry import Retry
from cafe.flower.retry_interceptor import protect, tolerated_errors

GRACE = 5.0  # seconds that a message is kept after its deadline, for replies just before it
# Messages that are pushed at once. Flower announces them all, and then uploads their contents one
# by one; meanwhile every client that has seen its message asks for the content again and again.
BATCH = 10
LIFETIME = 12 * 3600.0  # seconds that a message is kept if it has no deadline


class GridConnection:
    """Sends messages through Flower's Grid and fetches replies. Clients are named by node ids.

    Args:
        grid: the Grid of the ServerApp.
        max_bytes: how many bytes a reply may have.
        arrays: how many arrays a well-formed reply has.
        say: called with a sentence when the SuperLink answers with an error.
    """

    def __init__(
        self, grid: Grid, max_bytes: int, arrays: int, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._grid = grid
        protect(grid, say)
        # One for each kind of request, so that successes of one do not hide failures of another.
        self._listing, self._pushing, self._fetching = Retry(say), Retry(say), Retry(say)
        self._inbox = Inbox(grid, max_bytes, arrays, self._fetching)

    @property
    def limited(self) -> bool:
        """Whether the download of a reply stops when it is too large."""
        return self._inbox.limited

    def present(self) -> Sequence[str]:
        """The ids of the nodes that are online according to the SuperLink."""
        return sorted(f"{node}" for node in self._listing.call(self._grid.get_node_ids))

    def push(self, ready: list[Message]) -> Sequence[str | None]:
        """Send messages: a ticket for each, None if sending failed."""
        return [
            ticket
            for first in range(0, len(ready), BATCH)
            for ticket in self._push_some(ready[first : first + BATCH])
        ]

    def _push_some(self, ready: list[Message]) -> list[str | None]:
        # A retry pushes the same messages: the SuperLink ignores those that it already has.
        tickets = self._pushing.call(lambda: self._push(ready))
        if len(tickets) != len(ready):  # the simulation leaves out messages that it did not store
            sent = {*tickets}
            ids = [message.metadata.message_id for message in ready]
            tickets = [name if name in sent else "" for name in ids]
        return [ticket or None for ticket in tickets]

    def _push(self, ready: list[Message]) -> list[str]:
        """Push messages, and once more if the SuperLink has lost track of what it has of them."""
        try:
            return list(self._grid.push_messages(ready))
        except ObjectPushError:
            return list(self._grid.push_messages(ready))

    def fetch(self, tickets: Collection[str]) -> Iterator[RawReply]:
        """Yield the replies that have arrived, one by one to save memory."""
        return self._inbox.fetch(tickets)

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        time.sleep(seconds)

    def clock(self) -> float:
        """Seconds on a clock that is never set back."""
        return time.monotonic()

    def errors(self) -> int:
        """How many errors of the SuperLink were tolerated so far."""
        retries = (self._listing, self._pushing, self._fetching)
        return sum(retry.errors for retry in retries) + tolerated_errors(self._grid)


def time_to_live(seconds: float | None) -> float:
    """Seconds that the SuperLink keeps a message whose reply is awaited for some seconds."""
    return LIFETIME if seconds is None else seconds + GRACE
