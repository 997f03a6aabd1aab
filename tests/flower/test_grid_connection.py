"""Messages are pushed in batches, and each has its own ticket."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import Message
from flwr.supercore.inflatable.inflatable_utils import ObjectPushError

from cafe.flower.grid_connection import BATCH, GridConnection
from tests.support.flower.fake_grid import FakeGrid, train_messages

pytestmark = pytest.mark.usefixtures("identity")


class CountingGrid(FakeGrid):
    """Notes how many messages each call has pushed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sizes: list[int] = []

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        some = [*messages]
        self.sizes.append(len(some))
        return super().push_messages(some)


def test_batches_keep_the_order_of_the_tickets() -> None:
    nodes, refused = range(1, 2 * BATCH + 6), {3, BATCH + 2}
    grid = CountingGrid({node: [1.0] for node in nodes}, refused=refused)
    connection = GridConnection(grid, 1 << 20, 1)
    tickets = connection.push(train_messages(nodes))
    assert grid.sizes == [BATCH, BATCH, 5]
    assert {node for node, ticket in zip(nodes, tickets, strict=True) if ticket is None} == refused
    sent = [m.metadata.dst_node_id for m in grid.pushed]
    assert sent == [node for node in nodes if node not in refused]
    assert [t for t in tickets if t] == [f"message-{k}" for k in range(len(sent))]


@pytest.mark.parametrize("losses", [1, 2])
def test_messages_whose_contents_were_lost_are_pushed_once_more(losses: int) -> None:
    class LosingGrid(CountingGrid):
        def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
            if len(self.sizes) == losses:
                return super().push_messages(messages)
            self.sizes.append(len([*messages]))
            raise ObjectPushError("object-1", 1, "session-1")

    grid = LosingGrid({1: [1.0], 2: [1.0]})
    connection = GridConnection(grid, 1 << 20, 1)
    if losses == 1:
        assert len(connection.push(train_messages([1, 2]))) == 2
    else:
        with pytest.raises(ObjectPushError):
            connection.push(train_messages([1, 2]))
    assert grid.sizes == [2, 2]


def test_nothing_to_push_is_no_request() -> None:
    grid = CountingGrid({1: [1.0]})
    assert GridConnection(grid, 1 << 20, 1).push([]) == []
    assert grid.sizes == []
