"""Send messages through a Grid, and collect the replies until a time limit.

Flower's own loop looks for replies every 3 s, and checks the time only then. This one looks every
0.2 s and once more at the limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from cafe.flower.grid_connection import GridConnection
from cafe.flower.inbox import RawReply
from cafe.flower.reply_errors import explain_error, is_offline

POLL = 0.2  # seconds between two requests for replies
SLACK = 0.5  # seconds that the last request may end after the limit; its replies are still in time
MAX_BYTES = 2 << 30  # of one reply
MAX_ARRAYS = 10_000  # of one reply
NOT_SENT = "the SuperLink did not accept its message"


@dataclass(frozen=True, eq=False)
class Answer:
    """What came back for one message.

    Attributes:
        position: the position of the message among those that were sent.
        seconds: time from the first byte sent to the arrival.
        message: the reply, which may contain an error; None if it cannot be read, or if the message
            could not be sent.
        reason: why it is not a report; empty if it is one.
        offline: whether the client has lost its connection.
    """

    position: int
    seconds: float
    message: Message | None
    reason: str = ""
    offline: bool = False

    @property
    def is_report(self) -> bool:
        """Whether the client has sent a reply without an error."""
        return not self.reason


class Exchange:
    """Sends messages and collects replies.

    Args:
        grid: the Grid of the ServerApp.
        say: called with a sentence when the SuperLink answers with an error.
        clock: the time in seconds, never set back.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self,
        grid: Grid,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock, self.sleep = clock, sleep
        self._connection = GridConnection(grid, MAX_BYTES, MAX_ARRAYS, say)

    def run(
        self,
        messages: Sequence[Message],
        seconds: float | None,
        enough: Callable[[Sequence[Answer], float], bool] = lambda answers, seconds: False,
    ) -> list[Answer]:
        """The answers that arrive within some seconds, in the order of the messages.

        Args:
            messages: what is sent, at most one message per client.
            seconds: how long to wait, from the beginning of the sending; None: until every client
                has answered.
            enough: return as soon as this is true of the answers and of the time since then.
        """
        began = self.clock()
        until = math.inf if seconds is None else began + seconds
        tickets = self._connection.push([*messages])
        waiting = {ticket: k for k, ticket in enumerate(tickets) if ticket}
        answers = [
            Answer(k, self.clock() - began, None, NOT_SENT)
            for k in range(len(messages))
            if k not in waiting.values()
        ]
        while waiting:
            moment = self.clock()
            for raw in self._connection.fetch(frozenset(waiting)):
                at = moment if raw.at is None else raw.at
                if raw.ticket in waiting and at <= until + SLACK:
                    position = waiting.pop(raw.ticket)
                    answers.append(_read(raw, position, min(at, until) - began))
            if moment >= until or enough(answers, moment - began) or not waiting:
                break
            self.sleep(min(POLL, max(until - self.clock(), 0.0)))
        return sorted(answers, key=lambda answer: answer.position)


def _read(raw: RawReply, position: int, seconds: float) -> Answer:
    message = raw.message
    if message is None:
        return Answer(position, seconds, None, raw.malformed)
    if message.has_error():
        error = message.error
        return Answer(position, seconds, message, explain_error(error), is_offline(error))
    return Answer(position, seconds, message)
