"""Download replies object by object, without waiting for any client.

Flower's Grid returns a reply as soon as a client has announced it. It waits for the reply's objects
however slowly they are uploaded, accepts any number of them, and raises an exception if they do not
fit together. So any client could stop a server or delay it beyond its deadline. Here, a reply with
missing objects is tried again later. A reply that is too large or is not a message affects only its
own ticket.

This module uses parts of Flower that are not public. If a version of Flower does not have them,
``limited`` is False, replies are read through the Grid, and the server logs a warning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from flwr.app import Array, Message
from flwr.serverapp import Grid

from cafe.flower.retry import Retry


@dataclass(frozen=True, eq=False)
class RawReply:
    """A reply as it was received.

    Attributes:
        ticket: the order that it answers.
        message: the reply as a message of Flower; None if it is not one.
        malformed: why it is not a message.
        at: when it was announced, on the monotonic clock.
    """

    ticket: str
    message: Message | None = None
    malformed: str = ""
    at: float | None = None


@dataclass(eq=False)
class _Download:
    """An announced reply, and the objects of it that have been downloaded."""

    message: str  # Flower's id of the reply
    missing: list[str]  # object ids; the root of the tree is last
    objects: dict[str, bytes] = field(default_factory=dict)
    size: int = 0  # bytes of ``objects``


class Inbox:
    """Downloads replies.

    Args:
        grid: the Grid of the ServerApp.
        max_bytes: how many bytes a reply may have.
        arrays: how many arrays a well-formed reply has.
        retry: tolerates errors of the SuperLink.
    """

    def __init__(self, grid: Grid, max_bytes: int, arrays: int, retry: Retry) -> None:
        self._grid: Any = grid  # its node and run are not public
        self.max_bytes = max_bytes
        # Each object costs one request. A well-formed reply has two per array, and one more for
        # every 5 MiB.
        self.max_objects = 1000 + 4 * arrays + max_bytes // (1 << 16)
        self._client: Any = getattr(grid, "_runtime_client", None)
        self._downloads: dict[str, _Download] = {}
        self._retry = retry
        self.limited = all(
            hasattr(self._client, name)
            for name in ("PullMessages", "PullObject", "ConfirmMessageReceived")
        )

    def fetch(self, tickets: Collection[str]) -> Iterator[RawReply]:
        """Yield the replies that are complete now; downloads of other tickets are dropped."""
        if not self.limited:
            yield from self._fetch_through_grid(tickets)
            return
        self._downloads = {t: download for t, download in self._downloads.items() if t in tickets}
        try:
            self._list_announced([t for t in sorted(tickets) if t not in self._downloads])
        except Exception as error:
            self._retry.tolerate(error)
        else:
            self._retry.reset()
        at = time.monotonic()  # after the request: a delayed answer includes later replies
        for ticket in sorted(self._downloads):
            try:
                reply = self._download(ticket, self._downloads[ticket])
            except Exception as error:
                self._retry.tolerate(error)
                continue
            if reply is not None:
                del self._downloads[ticket]
                yield replace(reply, at=at)

    def _list_announced(self, tickets: list[str]) -> None:
        """Add a download for each announced reply.

        The ticket is taken from the SuperLink's answer, not from what the client sent.
        """
        from flwr.proto.runtime_pb2 import PullAppMessagesRequest

        if not tickets:
            return
        answer = self._client.PullMessages(PullAppMessagesRequest(message_ids=tickets))
        pairs = zip(answer.messages_list, answer.message_object_trees, strict=True)
        for message, tree in pairs:
            stack, objects = [tree], list[str]()
            while stack and len(objects) <= self.max_objects:
                node = stack.pop()
                objects.append(node.object_id)
                stack.extend(node.children)
            ticket = message.metadata.reply_to_message_id
            missing = list(dict.fromkeys(objects))[::-1]
            self._downloads[ticket] = _Download(message.metadata.message_id, missing)

    def _download(self, ticket: str, download: _Download) -> RawReply | None:
        """The reply if all its objects have been uploaded; None if some are still missing."""
        from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest

        ours = {"node": self._grid.node, "run_id": self._grid.run.run_id}
        if len(download.missing) > self.max_objects:
            return RawReply(ticket, malformed=f"it has more than {self.max_objects:,} objects")
        while download.missing:
            name = download.missing[-1]
            answer = self._client.PullObject(PullObjectRequest(object_id=name, **ours))
            if not answer.object_found:
                return RawReply(ticket, malformed="one of its objects was deleted")
            if not answer.object_available:
                return None
            download.objects[download.missing.pop()] = answer.object_content
            download.size += len(answer.object_content)
            if download.size > self.max_bytes:
                return RawReply(ticket, malformed=f"it has more than {self.max_bytes:,} bytes")
        self._client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(message_object_id=download.message, **ours)
        )
        return _parse(ticket, download, self.max_bytes)

    def _fetch_through_grid(self, tickets: Collection[str]) -> Iterator[RawReply]:
        """Read replies one at a time, so that a malformed one affects only its own ticket."""
        for ticket in sorted(tickets):
            try:
                for message in self._grid.pull_messages([ticket]):
                    yield RawReply(ticket, message)
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                yield RawReply(ticket, malformed=f"it is not a message: {type(error).__name__}")


def _parse(ticket: str, download: _Download, max_bytes: int) -> RawReply:
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

    try:
        if _inflated_size(download.objects) > max_bytes:
            return RawReply(ticket, malformed=f"it inflates to more than {max_bytes:,} bytes")
        message = inflate_object_from_contents(download.message, download.objects)
    except Exception as error:  # a client can send anything, so any exception is possible
        return RawReply(ticket, malformed=f"it is not a message: {type(error).__name__}")
    if not isinstance(message, Message):
        return RawReply(ticket, malformed=f"it is not a message: {type(message).__name__}")
    return RawReply(ticket, message)


def _inflated_size(objects: dict[str, bytes]) -> int:
    """Bytes of all assembled arrays: an array may refer to the same chunk many times."""
    from flwr.supercore.inflatable.inflatable_object import (
        get_object_body,
        get_object_head_values_from_object_content,
    )

    total = 0
    for content in objects.values():
        kind, children, _ = get_object_head_values_from_object_content(content)
        if kind == Array.__qualname__:
            used = json.loads(get_object_body(content, Array))["arraychunk_ids"]
            total += sum(len(objects[children[k]]) for k in used)
    return total
