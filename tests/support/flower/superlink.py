"""A SuperLink in memory, as Flower's client sees it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.proto.message_pb2 import PullObjectResponse
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree

from cafe.flower import array_records

MODEL = {"w": np.arange(6, dtype=np.float32)}
VALUES = {"invitation": 0, "version": 0, "carried": False, "examples": 1}


def made(content: RecordDict) -> Message:
    """A message with a content."""
    metadata = Metadata(
        run_id=7, message_id="", src_node_id=2, dst_node_id=1, reply_to_message_id="", group_id="",
        created_at=1.0, ttl=60.0, message_type="train",
    )  # fmt: skip
    return make_message(metadata, content)


class Link:
    """The SuperLink as Flower's client sees it: announced replies and stored pieces."""

    def __init__(self) -> None:
        self.announced: dict[str, tuple[Any, Any]] = {}
        self.pieces: dict[str, bytes | None] = {}  # None: not stored yet
        self.pulled: list[str] = []
        self.confirmed: list[str] = []
        self.asked: list[list[str]] = []

    def put(self, ticket: str, number: float, model: Any = MODEL) -> dict[str, bytes]:
        """Store a complete valid reply, and return its pieces."""
        update = array_records.pack_arrays(
            {name: a + np.float32(number) for name, a in model.items()}
        )
        content = RecordDict({"update": update, "report": ConfigRecord(dict(VALUES))})
        message = made(content)
        objects = {name: o.deflate() for name, o in get_all_nested_objects(message).items()}
        head = SimpleNamespace(
            metadata=SimpleNamespace(reply_to_message_id=ticket, message_id=message.object_id)
        )
        self.announced[ticket] = (head, get_object_tree(message))
        self.pieces |= objects
        return objects

    def PullMessages(self, request: Any) -> Any:  # noqa: N802
        self.asked.append(list(request.message_ids))
        found = [self.announced.pop(t) for t in request.message_ids if t in self.announced]
        return SimpleNamespace(
            messages_list=[head for head, _ in found],
            message_object_trees=[tree for _, tree in found],
        )

    def PullObject(self, request: Any) -> Any:  # noqa: N802
        self.pulled.append(request.object_id)
        if request.object_id not in self.pieces:
            return PullObjectResponse(object_found=False, object_available=False)
        content = self.pieces[request.object_id]
        if content is None:
            return PullObjectResponse(object_found=True, object_available=False)
        return PullObjectResponse(object_found=True, object_available=True, object_content=content)

    def ConfirmMessageReceived(self, request: Any) -> None:  # noqa: N802
        self.confirmed.append(request.message_object_id)


def grid(link: Link) -> Any:
    return SimpleNamespace(
        _runtime_client=link, node=Node(node_id=1), run=SimpleNamespace(run_id=7)
    )


class BusyError(Exception):
    """The error of a library if the server answers with an error."""

    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)
