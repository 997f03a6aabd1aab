"""Replies on their way in: piece by piece, never waiting for a client, each on its own.

Flower's Grid hands out a reply as soon as a client has announced it, waits for its pieces however
slowly they come, takes them in whatever their number, and ends with an exception if they do not fit
together. Any client could so stop a server, or keep it from its deadline. Here a reply whose pieces
are not all there is looked at again later; one that is too large, or is no message, is the affair
of its ticket alone.

This goes one layer below what of Flower is public. Where a version of Flower has it otherwise,
``limited`` is False, replies come through the Grid, and the server says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from flwr.app import Array, Message
from flwr.serverapp import Grid

from cafe.flower.retry import Busy


@dataclass(frozen=True, eq=False)
class Letter:
    """What has come for a ticket: a message, or why what came is none; and when it was there."""

    ticket: str
    message: Message | None = None
    malformed: str = ""
    at: float | None = None


@dataclass(eq=False)
class _Coming:
    """A reply that was announced, and the pieces of it that are here."""

    message: str  # Flower's id of it
    missing: list[str]  # ids of pieces, the outermost last
    pieces: dict[str, bytes] = field(default_factory=dict)
    size: int = 0  # of the pieces that are here


class Inbox:
    """Fetches replies.

    Args:
        grid: of the ServerApp.
        most: bytes that a reply may have.
        arrays: how many arrays an honest one has.
        busy: bears with errors of the SuperLink's.
    """

    def __init__(self, grid: Grid, most: int, arrays: int, busy: Busy) -> None:
        self._grid: Any = grid  # its node and run are known below what is public
        self.most = most
        # An honest reply has two for an array and one more for each 5 MiB; each costs a request.
        self.pieces = 1000 + 4 * arrays + most // (1 << 16)
        self._client: Any = getattr(grid, "_runtime_client", None)
        self._coming: dict[str, _Coming] = {}
        self._busy = busy
        self.limited = all(
            hasattr(self._client, name)
            for name in ("PullMessages", "PullObject", "ConfirmMessageReceived")
        )

    def fetch(self, tickets: Collection[str]) -> Iterator[Letter]:
        """What is complete by now."""
        if not self.limited:
            yield from self._through_the_grid(tickets)
            return
        self._coming = {t: coming for t, coming in self._coming.items() if t in tickets}
        try:
            self._announced([ticket for ticket in sorted(tickets) if ticket not in self._coming])
        except Exception as error:
            self._busy.bear(error)
        else:
            self._busy.over()
        at = time.monotonic()  # a question that was held up may bring what came meanwhile
        for ticket in sorted(self._coming):
            try:
                letter = self._complete(ticket, self._coming[ticket])
            except Exception as error:
                self._busy.bear(error)
                continue
            if letter is not None:
                del self._coming[ticket]
                yield replace(letter, at=at)

    def _announced(self, tickets: list[str]) -> None:
        """Ask which replies there are. The ticket is what the SuperLink says, not the client."""
        from flwr.proto.runtime_pb2 import PullAppMessagesRequest

        if not tickets:
            return
        answer = self._client.PullMessages(PullAppMessagesRequest(message_ids=tickets))
        pairs = zip(answer.messages_list, answer.message_object_trees, strict=True)
        for message, tree in pairs:
            stack, pieces = [tree], list[str]()
            while stack and len(pieces) <= self.pieces:
                node = stack.pop()
                pieces.append(node.object_id)
                stack.extend(node.children)
            ticket = message.metadata.reply_to_message_id
            missing = list(dict.fromkeys(pieces))[::-1]
            self._coming[ticket] = _Coming(message.metadata.message_id, missing)

    def _complete(self, ticket: str, coming: _Coming) -> Letter | None:
        """A reply, if all of it is there; None: not yet."""
        from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest

        ours = {"node": self._grid.node, "run_id": self._grid.run.run_id}
        if len(coming.missing) > self.pieces:
            return Letter(ticket, malformed=f"it has more than {self.pieces:,} pieces")
        while coming.missing:
            piece = coming.missing[-1]
            answer = self._client.PullObject(PullObjectRequest(object_id=piece, **ours))
            if not answer.object_found:
                return Letter(ticket, malformed="a piece of it is gone")
            if not answer.object_available:
                return None
            coming.pieces[coming.missing.pop()] = answer.object_content
            coming.size += len(answer.object_content)
            if coming.size > self.most:
                return Letter(ticket, malformed=f"it has more than {self.most:,} bytes")
        self._client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(message_object_id=coming.message, **ours)
        )
        return _opened(ticket, coming, self.most)

    def _through_the_grid(self, tickets: Collection[str]) -> Iterator[Letter]:
        """One at a time, so that what one client sends is no other's affair."""
        for ticket in sorted(tickets):
            try:
                for message in self._grid.pull_messages([ticket]):
                    yield Letter(ticket, message)
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                yield Letter(ticket, malformed=f"it is no message: {type(error).__name__}")


def _opened(ticket: str, coming: _Coming, most: int) -> Letter:
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

    try:
        if _unfolded(coming.pieces) > most:
            return Letter(ticket, malformed=f"it unfolds to more than {most:,} bytes")
        message = inflate_object_from_contents(coming.message, coming.pieces)
    except Exception as error:  # made of what a client sent, in whatever way that is wrong
        return Letter(ticket, malformed=f"it is no message: {type(error).__name__}")
    if not isinstance(message, Message):
        return Letter(ticket, malformed=f"it is no message: {type(message).__name__}")
    return Letter(ticket, message)


def _unfolded(pieces: dict[str, bytes]) -> int:
    """Bytes of all arrays: one may name the same piece of data many times over."""
    from flwr.supercore.inflatable.inflatable_object import (
        get_object_body,
        get_object_head_values_from_object_content,
    )

    whole = 0
    for content in pieces.values():
        kind, children, _ = get_object_head_values_from_object_content(content)
        if kind == Array.__qualname__:
            used = json.loads(get_object_body(content, Array))["arraychunk_ids"]
            whole += sum(len(pieces[children[k]]) for k in used)
    return whole
