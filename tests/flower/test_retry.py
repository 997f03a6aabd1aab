"""Requests are repeated while the SuperLink answers with server errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import Message
from flwr.proto.node_pb2 import Node

from cafe.flower.grid import GridWire
from cafe.flower.retry import MAX_OUTAGE, SuperLinkError, temporary
from cafe.live.model_layout import Layout
from cafe.live.wire import Order
from tests.support.flower.superlink import MODEL, BusyError, Link

pytestmark = pytest.mark.usefixtures("identity")


@pytest.fixture
def link() -> Link:
    return Link()


class BusyGrid:
    """A SuperLink that answers some requests with an error, as if it were busy."""

    def __init__(self, link: Link, errors: list[int]) -> None:
        self.errors, self.link, self.pushed = errors, link, list[list[str]]()
        self._runtime_client = self
        self.node, self.run = Node(node_id=1), SimpleNamespace(run_id=7)

    def fail(self) -> None:
        if self.errors:
            raise BusyError(self.errors.pop(0))

    def get_node_ids(self) -> list[int]:
        self.fail()
        return [3, 4]

    def push_messages(self, ready: list[Message]) -> list[str]:
        self.pushed.append([message.object_id for message in ready])
        self.fail()
        return [f"t{k}" for k, _ in enumerate(ready)]

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.link, name)

        def answer(request: Any) -> Any:
            self.fail()
            return call(request)

        return answer


class Waited(list[float]):
    """A clock that records how long was slept, without sleeping."""

    def monotonic(self) -> float:
        return 100.0 + sum(self)

    def sleep(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    times = Waited()
    monkeypatch.setattr("cafe.flower.retry.time", times)
    return times


def test_busy_superlink_is_retried(link: Link, waited: Waited) -> None:
    busy: Any = BusyGrid(link, [500, 500])
    said: list[str] = []
    wire = GridWire(busy, Layout.of(MODEL), "run", said.append)
    assert wire.present() == ["3", "4"]
    assert len(waited) == 2
    assert said == ["The SuperLink answered with an error (500). Retrying."]
    order = Order("3", 0, 0, 0, 0, seconds=9.0)
    busy.errors = [500]
    assert wire.send([order, order], MODEL) == ["t0", "t1"]
    assert busy.pushed[0] == busy.pushed[1]  # the very same messages
    assert len(said) == 2
    link.put("t0", 1)
    for _ in range(9):  # receiving does not wait, and continues where it was
        busy.errors = [500]
        assert [*wire.receive(["t0"])] == []
    assert len(waited) == 3
    (reply,) = wire.receive(["t0"])
    assert reply.report is not None


def test_separate_outages_do_not_add_up(link: Link, waited: Waited) -> None:
    busy: Any = BusyGrid(link, [])
    wire = GridWire(busy, Layout.of(MODEL), "run")
    for _ in range(3):
        busy.errors = [500]
        assert wire.present() == ["3", "4"]
        busy.errors = [500]
        assert [*wire.receive(["t0"])] == []
        assert [*wire.receive(["t0"])] == []
        waited.sleep(MAX_OUTAGE)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_refusal_of_the_superlink_is_not_retried(link: Link, waited: Waited, status: int) -> None:
    busy: Any = BusyGrid(link, [status] * 3)
    wire = GridWire(busy, Layout.of(MODEL), "run")
    with pytest.raises(BusyError):
        wire.present()
    with pytest.raises(BusyError):
        wire.send([Order("3", 0, 0, 0, 0)], MODEL)
    with pytest.raises(BusyError):
        [*wire.receive(["t0"])]
    assert not waited


def test_permanent_errors_of_the_superlink_end_the_run(link: Link, waited: Waited) -> None:
    """Also a SuperLink that can only list its nodes: no round is wasted on it."""
    busy: Any = BusyGrid(link, [])
    wire = GridWire(busy, Layout.of(MODEL), "run")
    assert wire.present() == ["3", "4"]
    busy.errors = [500] * 99
    with pytest.raises(SuperLinkError, match="submit the app again"):
        wire.send([Order("3", 0, 0, 0, 0)], MODEL)
    assert MAX_OUTAGE < sum(waited) < MAX_OUTAGE + 5
    waited.clear()
    busy.errors = [500] * 99
    for _ in range(int(MAX_OUTAGE)):
        assert [*wire.receive(["t0"])] == []
        waited.sleep(1.0)
    waited.sleep(1.0)
    with pytest.raises(SuperLinkError, match="submit the app again"):
        [*wire.receive(["t0"])]


def test_temporary_errors() -> None:
    import httpx

    assert temporary(BusyError(500)) == "answered with an error (500)"
    assert temporary(httpx.ReadError("reset")) == "cannot be reached (ReadError)"
    assert temporary(httpx.RemoteProtocolError("truncated"))
    assert not temporary(BusyError(401))
    assert not temporary(httpx.ConnectError("CERTIFICATE_VERIFY_FAILED"))
    assert not temporary(KeyError("x"))
