"""Orders as Flower's usual messages, and replies as reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ConfigRecord, MessageType

from cafe.flower.grid_connection import GRACE, LIFETIME
from cafe.flower.stock_messages import RecordKeys
from cafe.flower.stock_wire import StockWire
from cafe.live.job_records import JobRecord
from cafe.live.model_layout import Layout
from cafe.live.wire import ClientScore, Order, Reply
from tests.support.flower.stock_grid import StockGrid, stock_app

pytestmark = pytest.mark.usefixtures("identity")

MODEL: dict[str, Any] = {"w": np.array([1.0, 2.0])}


def train(model: dict[str, Any], config: Any, context: Any) -> Any:
    return {"w": model["w"] + context.node_id}, {"num-examples": 5}


def evaluate(model: dict[str, Any], config: Any, context: Any) -> dict[str, Any]:
    if context.node_id == 2:
        raise ValueError("no data")
    return {"num-examples": 3, "loss": 1.0} if context.node_id == 1 else {"loss": 1.0}


@pytest.fixture
def grid(monkeypatch: pytest.MonkeyPatch) -> StockGrid:
    return StockGrid(stock_app(train, evaluate), 3).install(monkeypatch)


@pytest.fixture
def wire(grid: StockGrid) -> StockWire:
    def config(server_round: int) -> ConfigRecord:
        return ConfigRecord({"lr": 0.5})

    return StockWire(grid, Layout.of(MODEL), RecordKeys(), config, ConfigRecord())


def order(node: int, invitation: int = 0, **more: Any) -> Order:
    return Order(f"{node}", node - 1, 4, 6, 0, invitation=invitation, **more)


def record(node: int, invitation: int = 0, **more: Any) -> JobRecord:
    return JobRecord(node - 1, f"{node}", 4, 6, False, 0.0, invitation=invitation, **more)


def test_messages_share_the_model_and_have_unpredictable_ids(
    wire: StockWire, grid: StockGrid
) -> None:
    wire.send([order(1, seconds=8.0), order(2, seconds=8.0)], MODEL)
    wire.send([order(1, 1)], MODEL)
    first, second, third = grid.sent
    assert first.content["arrays"].object_id == second.content["arrays"].object_id
    assert first.content["arrays"].object_id != third.content["arrays"].object_id
    groups = {message.metadata.group_id for message in grid.sent}
    assert len(groups) == 3
    assert all(group.startswith("7-") for group in groups)
    assert dict(second.content["config"]) == {"lr": 0.5, "server-round": 7, "deadline": 8.0}
    assert dict(third.content["config"]) == {"lr": 0.5, "server-round": 7}
    assert [m.metadata.ttl for m in grid.sent] == [8.0 + GRACE, 8.0 + GRACE, LIFETIME]
    assert {m.metadata.message_type for m in grid.sent} == {MessageType.TRAIN}


def test_reply_is_a_report_on_the_order_of_its_ticket(wire: StockWire, grid: StockGrid) -> None:
    tickets = {*wire.send([order(1), order(2, 3)], MODEL)}
    assert not [*wire.receive([t for t in tickets if t])]
    grid.now += 1.0
    replies = [*wire.receive([t for t in tickets if t])]
    reports = [reply.report for reply in replies if reply.report is not None]
    assert [r.update["w"].tolist() for r in reports] == [[1.0, 1.0], [2.0, 2.0]]
    assert [(r.invitation, r.version, r.examples, r.took) for r in reports] == [
        (0, 6, 5, None),
        (3, 6, 5, None),
    ]


def test_replies_are_kept_until_the_fate_of_their_job_is_known(
    wire: StockWire, grid: StockGrid
) -> None:
    tickets = [t for t in wire.send([order(1), order(2), order(3)], MODEL) if t]
    grid.now += 1.0
    assert len([*wire.receive(tickets)]) == 3
    merged = wire.take_merged([record(1, merged=7, coefficient=0.25), record(2, fate="failed")])
    assert [(reply.update["w"].tolist(), share) for reply, share in merged] == [([1, 1], 0.25)]
    again = wire.take_merged([record(1, merged=8), record(2, merged=8), record(3, merged=8)])
    assert [reply.update["w"].tolist() for reply, _ in again] == [[3.0, 3.0]]


def test_reply_to_an_order_that_is_no_longer_awaited_is_ignored(
    wire: StockWire, grid: StockGrid
) -> None:
    first, second = wire.send([order(1), order(2)], MODEL)
    assert first is not None
    assert second is not None
    grid.now += 1.0
    assert [reply.ticket for reply in wire.receive([first])] == [first]
    (late,) = wire.receive([second])  # its order was dropped with the first call
    assert late.report is None
    assert late.malformed


def test_evaluations_have_results_or_reasons(wire: StockWire, grid: StockGrid) -> None:
    wire.server_round = 9
    tickets = [t for t in wire.request_scores(["1", "2", "3"], MODEL, 4.0) if t]
    grid.now += 1.0
    good, failed, without = wire.receive_scores(tickets)
    assert isinstance(good, ClientScore)
    assert good.examples == 3
    assert [*wire.evaluations] == [tickets[0]]
    assert isinstance(failed, Reply)
    assert "no data" in failed.lost
    assert isinstance(without, Reply)
    assert "no 'num-examples'" in without.lost
    assert grid.configs(MessageType.EVALUATE) == [{"server-round": 9}] * 3


def test_messages_that_the_simulation_does_not_store_have_no_ticket(
    wire: StockWire, grid: StockGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Grid returns ids only of the messages that were stored."""
    push = grid.push_messages
    monkeypatch.setattr(grid, "push_messages", lambda ready: push(ready)[1:])
    tickets = wire.send([order(1), order(2)], MODEL)
    assert tickets[0] is None
    assert tickets[1] is not None
