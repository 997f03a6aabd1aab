"""An order's vectors on Flower's messages: there, back, and sent once where they are shared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from cafe.flower import messages
from cafe.flower.client_app import client
from cafe.flower.grid import GridWire
from cafe.live.client_work import Job
from cafe.live.model_layout import Arrays, Layout
from cafe.live.wire import Order
from tests.flower.test_messages import sent

MODEL: Arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(2)}
OFFSET: Arrays = {"w": np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)}
FROZEN: Arrays = {"w": np.arange(6).reshape(2, 3) % 2 == 0}


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """What goes out, in the order in which it does."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    return []


def send(pushed: list[Message], *orders: Order) -> list[Message]:
    def push_messages(ready: list[Message]) -> list[str]:
        pushed.extend(ready)
        return [f"{k}" for k, _ in enumerate(ready)]

    grid: Any = SimpleNamespace(push_messages=push_messages)
    GridWire(grid, Layout.of(MODEL), "run").send(orders, MODEL)
    return pushed


def order(number: int, **vectors: Any) -> Order:
    return Order(f"{number + 3}", number, 0, 0, 0, **vectors)


def test_vectors_there_and_back(pushed: list[Message]) -> None:
    message = send(pushed, order(0, offset=OFFSET, frozen=FROZEN))[0]
    content: RecordDict = sent(message.content)
    assert set(content) == {"model", "order", "offset", "frozen"}
    asked, _ = messages.read_order(content.config_records["order"])
    assert asked == order(0)
    found = messages.read_vectors(content)
    for name, expected in (("offset", OFFSET), ("frozen", FROZEN)):
        np.testing.assert_array_equal(found[name]["w"], expected["w"])
        assert found[name]["w"].dtype == expected["w"].dtype


def test_no_vectors_no_records(pushed: list[Message]) -> None:
    message = send(pushed, order(0))[0]
    assert set(message.content) == {"model", "order"}
    assert messages.read_vectors(message.content) == {}


def test_shared_vectors_are_one_record(pushed: list[Message]) -> None:
    own = {"w": OFFSET["w"] + 1}
    orders = (order(0, offset=OFFSET), order(1, offset=OFFSET), order(2, offset=own))
    names = [m.content["offset"].object_id for m in send(pushed, *orders)]
    assert names[0] == names[1] != names[2]
    pushed.clear()
    again = [m.content["offset"].object_id for m in send(pushed, *orders)]
    assert not set(names) & set(again)  # nobody can foresee them


def test_a_client_app_trains_with_them(pushed: list[Message]) -> None:
    """A step against the pull, all of it: 1 - offset; what is frozen stays."""
    seen: list[Job] = []

    def train(model: Arrays, job: Job) -> Arrays:
        seen.append(job)
        return {**model, "w": model["w"] + 1 - job.pull("w", model["w"])}

    message = send(pushed, order(0, offset=OFFSET, frozen=FROZEN))[0]
    context = Context(7, 3, {}, RecordDict(), {})
    answer = client(train)(message, context)
    report = messages.read_report(answer.content, 10**6)
    assert report is not None
    expected = np.where(FROZEN["w"], 0, 1 - OFFSET["w"])
    np.testing.assert_allclose(report.update["w"], expected, atol=1e-6)
    np.testing.assert_array_equal(seen[0].frozen["w"], FROZEN["w"])
