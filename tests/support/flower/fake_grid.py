"""A Grid in memory with a clock of its own: clients reply at the times that a test gives."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from cafe.flower.round_terms import read_terms
from cafe.flower.watched_grid import WatchedGrid


@dataclass(frozen=True)
class Fails:
    """A client that replies with an error after some seconds."""

    after: float
    text: str = "ValueError: no data"
    code: int = ErrorCode.CLIENT_APP_RAISED_EXCEPTION


NEVER = float("inf")  # seconds after which a client replies that does not reply


def leaves(after: float) -> Fails:
    """A client whose connection is lost after some seconds."""
    return Fails(after, "", ErrorCode.NODE_UNAVAILABLE)


@dataclass
class FakeGrid(Grid):
    """A Grid whose clients do what a test has written down.

    Attributes:
        script: for each node what it does with its first, second ... training message: seconds
            after which it replies, or :class:`Fails`. The last entry is repeated.
        online: the nodes that are online; by default those of the script.
        evaluation: seconds after which every client replies to other messages.
        refused: nodes whose messages are not accepted.
    """

    script: Mapping[int, Sequence[float | Fails]]
    online: list[int] = field(default_factory=list)
    evaluation: float = 0.3
    refused: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.now = 0.0
        self.pushed: list[Message] = []
        self.pushed_at: list[float] = []
        self.pulls: list[float] = []
        self.online = self.online or [*self.script]
        self._due: dict[str, tuple[float, Message]] = {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def trained(self, node: int) -> int:
        """How many training messages a node was sent."""
        return sum(
            m.metadata.dst_node_id == node and m.metadata.message_type == "train"
            for m in self.pushed
        )

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        tickets = []
        for message in messages:
            node = message.metadata.dst_node_id
            if node in self.refused:
                continue
            ticket = f"message-{len(self.pushed)}"
            vars(message.metadata)["_message_id"] = ticket
            acts = self.script[node]
            act: float | Fails = self.evaluation
            if message.metadata.message_type.startswith("train"):
                act = acts[min(self.trained(node), len(acts) - 1)]
            self.pushed.append(message)
            self.pushed_at.append(self.now)
            after = act.after if isinstance(act, Fails) else act
            self._due[ticket] = (self.now + after, _reply(message, act))
            tickets.append(ticket)
        return tickets

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        self.pulls.append(self.now)
        due = [ticket for ticket in message_ids if ticket in self._due]
        return [self._due.pop(t)[1] for t in due if self._due[t][0] <= self.now]

    def get_node_ids(self) -> Iterable[int]:
        return [*self.online]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        raise AssertionError("The loop of Flower's Grid must not be used.")

    def set_run(self, run: Any) -> None:
        self._run = run

    @property
    def run(self) -> Any:
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)


def _reply(message: Message, act: float | Fails) -> Message:
    if isinstance(act, Fails):
        return Message(Error(act.code, act.text), reply_to=message)
    node = message.metadata.dst_node_id
    metrics = MetricRecord({"loss": 1.0 / node, "num-examples": 10 * node})
    if not message.metadata.message_type.startswith("train"):
        return Message(RecordDict({"metrics": metrics}), reply_to=message)
    arrays = [
        part + step(node) for part in message.content.array_records["arrays"].to_numpy_ndarrays()
    ]
    return Message(
        RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message
    )


def step(node: int) -> float:
    """What a client's training adds to each weight; a number that is not exact in binary."""
    return 0.1 * node


def train_messages(nodes: Iterable[int], shared: bool = True, kind: str = "train") -> list[Message]:
    """A message for each node, as a stock strategy makes them."""
    one = RecordDict({"arrays": ArrayRecord([np.zeros(2)])})
    own = [one if shared else RecordDict({"arrays": ArrayRecord([np.zeros(2)])}) for _ in nodes]
    return [Message(c, node, kind) for c, node in zip(own, nodes, strict=True)]


def watched(
    grid: FakeGrid,
    deadline: Any = None,
    quorum: int | None = None,
    log: Path | None = None,
    target: int | None = None,
    controller: Any = None,
    **more: Any,
) -> WatchedGrid:
    """A watched Grid on the fake one's clock."""
    terms = read_terms(deadline, quorum, target, controller)
    return WatchedGrid(grid, terms, log, clock=grid.clock, sleep=grid.sleep, **more)


def logged(caplog: Any) -> list[str]:
    """The lines that were logged through Flower's logger."""
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.INFO]


def nodes_of(replies: Any) -> list[int]:
    """The clients that sent these replies."""
    return [reply.metadata.src_node_id for reply in replies]


def log_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a log of response times."""
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]
