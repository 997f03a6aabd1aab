"""A limit on what one reply may bring into memory.

Flower's Grid takes in a reply whole before anybody can look at it. Its client, one layer down, gets
it in pieces: there they are counted, and the reply of one who sends too much is cut off. This layer
is not public; where a version of Flower has it otherwise, nothing is counted, ``active`` is False,
and the server says so.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any


class Meter:
    """Stands between the Grid and its client, and counts."""

    def __init__(self, most: int) -> None:
        self.most, self.active = most, False
        self.stopped: set[str] = set()
        self._client: Any = None
        self._owners: dict[str, set[str]] = {}
        self._counted: set[str] = set()
        self._bytes: Counter[str] = Counter()
        self._lock = threading.Lock()

    @classmethod
    def on(cls, grid: Any, most: int) -> Meter:
        """Count what a grid pulls: at most so many bytes for a reply."""
        meter = cls(most)
        client = getattr(grid, "_runtime_client", None)
        if client is not None and hasattr(client, "PullObject") and hasattr(grid, "_client"):
            meter._client, meter.active = client, True
            grid._client = meter
        return meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def PullMessages(self, request: Any) -> Any:  # noqa: N802  Flower's name
        """See which pieces belong to which replies: those that are alike are one piece."""
        response = self._client.PullMessages(request)
        self._owners, self._counted, self._bytes = {}, set(), Counter()
        for message, tree in zip(
            response.messages_list, response.message_object_trees, strict=True
        ):
            stack = [tree]
            while stack:
                node = stack.pop()
                owners = self._owners.setdefault(node.object_id, set())
                owners.add(message.metadata.reply_to_message_id)
                stack.extend(node.children)
        return response

    def PullObject(self, request: Any) -> Any:  # noqa: N802
        """Count a piece; once there are too many, there are no more."""
        owners = self._owners.get(request.object_id, {""})
        if owners <= self.stopped:
            return self._none()
        response = self._client.PullObject(request)
        with self._lock:
            if request.object_id not in self._counted and response.object_content:
                self._counted.add(request.object_id)
                self._bytes.update(dict.fromkeys(owners, len(response.object_content)))
                self.stopped |= {owner for owner in owners if self._bytes[owner] > self.most}
            return self._none() if owners <= self.stopped else response

    def _none(self) -> Any:
        from flwr.proto.message_pb2 import PullObjectResponse

        return PullObjectResponse(object_found=False, object_available=False)
