"""Replies come in piece by piece, and no client can hold up or end the server with its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ConfigRecord, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.proto.message_pb2 import PullObjectResponse
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.task_identity import TaskIdentity

from cafe.flower import array_records
from cafe.flower.grid import GridWire
from cafe.flower.inbox import Inbox, RawReply
from cafe.flower.retry import MAX_OUTAGE, Retry
from cafe.live.model_layout import Layout
from cafe.live.wire import Order

MODEL = {"w": np.arange(6, dtype=np.float32)}
VALUES = {"invitation": 0, "version": 0, "carried": False, "examples": 1}


def made(content: RecordDict) -> Message:
    """A message, as if it were somebody's."""
    metadata = Metadata(
        run_id=7, message_id="", src_node_id=2, dst_node_id=1, reply_to_message_id="", group_id="",
        created_at=1.0, ttl=60.0, message_type="train",
    )  # fmt: skip
    return make_message(metadata, content)


class Link:
    """The SuperLink as Flower's client sees it: announced replies, and pieces that are there."""

    def __init__(self) -> None:
        self.announced: dict[str, tuple[Any, Any]] = {}
        self.pieces: dict[str, bytes | None] = {}  # None: not there yet
        self.pulled: list[str] = []
        self.confirmed: list[str] = []
        self.asked: list[list[str]] = []

    def put(self, ticket: str, number: float, model: Any = MODEL) -> dict[str, bytes]:
        """A good reply, all of it; what its pieces are."""
        update = array_records.pack_arrays(
            {name: a + np.float32(number) for name, a in model.items()}
        )
        content = RecordDict({"update": update, "report": ConfigRecord(dict(VALUES))})
        message = made(content)
        objects = {name: o.deflate() for name, o in get_all_nested_objects(message).items()}
        told = SimpleNamespace(
            metadata=SimpleNamespace(reply_to_message_id=ticket, message_id=message.object_id)
        )
        self.announced[ticket] = (told, get_object_tree(message))
        self.pieces |= objects
        return objects

    def PullMessages(self, request: Any) -> Any:  # noqa: N802
        self.asked.append(list(request.message_ids))
        found = [self.announced.pop(t) for t in request.message_ids if t in self.announced]
        return SimpleNamespace(
            messages_list=[told for told, _ in found],
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


def inbox_of(link: Link, most: int) -> Inbox:
    return Inbox(grid(link), most, 1, Retry(print))


def fetched(inbox: Inbox, *tickets: str) -> dict[str, RawReply]:
    return {letter.ticket: letter for letter in inbox.fetch(tickets)}


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def wire(link: Link) -> GridWire:
    return GridWire(grid(link), Layout.of(MODEL), "run")


def test_whole_replies_come_at_once(link: Link, wire: GridWire) -> None:
    assert wire.limited
    for k, ticket in enumerate(("a", "b", "c")):
        link.put(ticket, k)
    replies = {reply.ticket: reply for reply in wire.receive({"a", "b", "c", "not yet"})}
    assert [*replies] == ["a", "b", "c"]
    for k, reply in enumerate(replies.values()):
        assert reply.report is not None
        np.testing.assert_array_equal(reply.report.update["w"], MODEL["w"] + np.float32(k))
    assert len(link.confirmed) == 3
    assert not list(wire.receive({"not yet"}))


def test_who_uploads_slowly_holds_up_nobody_and_is_taken_when_done(link: Link) -> None:
    inbox = inbox_of(link, 10_000)
    slow = link.put("slow", 1)
    good = link.put("good", 2)
    late = next(name for name in reversed(slow) if name not in good)
    content, link.pieces[late] = link.pieces[late], None
    assert [*fetched(inbox, "slow", "good")] == ["good"]
    assert not fetched(inbox, "slow")
    link.pieces[late] = content
    assert fetched(inbox, "slow")["slow"].message is not None
    known = [name for name in slow if name != late and name not in good]
    assert all(link.pulled.count(name) == 1 for name in known)  # nothing is fetched twice
    assert link.asked == [["good", "slow"]]  # nor asked for


def test_one_that_is_not_waited_for_any_more_is_forgotten(link: Link) -> None:
    inbox = inbox_of(link, 10_000)
    slow = link.put("slow", 1)
    link.pieces[[*slow][-1]] = None
    assert not fetched(inbox, "slow")
    assert not fetched(inbox, "other")
    pulled = len(link.pulled)
    assert not fetched(inbox, "other")
    assert len(link.pulled) == pulled


@pytest.mark.parametrize("way", ["garbage", "empty", "child", "gone", "other kind"])
def test_what_is_no_message_is_the_affair_of_its_ticket(
    link: Link, wire: GridWire, way: str
) -> None:
    pieces = link.put("bad", 1)
    link.put("good", 2)
    told, _ = link.announced["bad"]
    root = told.metadata.message_id
    leaf = next(name for name in pieces if name != root)
    if way == "garbage":
        link.pieces[root] = b"\xff" * 40
    elif way == "empty":
        link.pieces[root] = b""
    elif way == "child":
        link.pieces[leaf] = b"\x00" * 10
    elif way == "gone":
        del link.pieces[leaf]
    else:
        told.metadata.message_id = leaf
        tree = get_object_tree(made(RecordDict()))
        del tree.children[:]
        tree.object_id = leaf
        link.announced["bad"] = (told, tree)
    replies = {reply.ticket: reply for reply in wire.receive({"bad", "good"})}
    assert replies["bad"].malformed
    assert replies["bad"].report is None
    assert replies["good"].report is not None


def test_one_that_is_too_large_is_not_taken_in(link: Link) -> None:
    pieces = link.put("large", 1)
    size = sum(map(len, pieces.values()))
    exact = inbox_of(link, size)
    assert fetched(exact, "large")["large"].message is not None
    link.put("large", 1)
    link.pulled.clear()
    letter = fetched(inbox_of(link, len(next(iter(pieces.values()))) - 1), "large")["large"]
    assert "more than" in letter.malformed
    assert len(link.pulled) < len(pieces)  # the rest is not even fetched


def test_a_little_data_named_many_times_is_not_unfolded(link: Link) -> None:
    """An array says which pieces of data it is made of, and may name one again and again."""
    pieces = link.put("bomb", 1)
    name, content = next((n, c) for n, c in pieces.items() if b"arraychunk_ids" in c)
    head, body = content.split(b"\x00", 1)
    grown = body.replace(b'"arraychunk_ids": [0]', b'"arraychunk_ids": [' + b"0, " * 999 + b"0]")
    assert grown != body
    kind, children, _ = head.decode().split(" ", 2)
    link.pieces[name] = f"{kind} {children} {len(grown)}".encode() + b"\x00" + grown
    letter = fetched(inbox_of(link, 20_000), "bomb")["bomb"]
    assert "inflates" in letter.malformed, letter


def test_a_flood_of_pieces_is_not_fetched(link: Link) -> None:
    link.put("flood", 1)
    _, tree = link.announced["flood"]
    for k in range(20_000):
        tree.children.add().object_id = f"{k}"
    inbox = inbox_of(link, 10_000)
    assert "objects" in fetched(inbox, "flood")["flood"].malformed
    assert not link.pulled


def test_replies_that_share_pieces_are_each_whole(link: Link, wire: GridWire) -> None:
    for ticket in ("a", "b", "c"):
        link.put(ticket, 5)  # equal updates are the same pieces to Flower
    assert [reply.report is not None for reply in wire.receive({"a", "b", "c"})] == [True] * 3


def test_another_flower_is_noticed_and_each_reply_still_stands_alone() -> None:
    good = made(RecordDict({"report": ConfigRecord({"stopped": True})}))

    def pull_messages(tickets: list[str]) -> list[Message]:
        if tickets == ["bad"]:
            raise KeyError("child")
        return [good] if tickets == ["good"] else []

    other: Any = SimpleNamespace(pull_messages=pull_messages)
    wire = GridWire(other, Layout.of(MODEL), "run")
    assert not wire.limited
    replies = {reply.ticket: reply for reply in wire.receive({"bad", "good", "none"})}
    assert replies["bad"].malformed
    assert replies["good"].stopped
    assert "none" not in replies


class BusyError(Exception):
    """What a library raises where the other side answers with an error."""

    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)


class BusyGrid:
    """A SuperLink that a client keeps busy for some requests."""

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
    """How long was waited each time, though nobody has to."""

    def monotonic(self) -> float:
        return 100.0 + sum(self)

    def sleep(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    times = Waited()
    monkeypatch.setattr("cafe.flower.retry.time", times)
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    return times


def test_a_superlink_that_is_busy_is_asked_again(link: Link, waited: Waited) -> None:
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
    for _ in range(9):  # a look does not wait, and goes on where it was
        busy.errors = [500]
        assert [*wire.receive(["t0"])] == []
    assert len(waited) == 3
    (reply,) = wire.receive(["t0"])
    assert reply.report is not None


def test_errors_now_and_then_do_not_add_up(link: Link, waited: Waited) -> None:
    busy: Any = BusyGrid(link, [])
    wire = GridWire(busy, Layout.of(MODEL), "run")
    for _ in range(3):
        busy.errors = [500]
        assert wire.present() == ["3", "4"]
        busy.errors = [500]
        assert [*wire.receive(["t0"])] == []
        assert [*wire.receive(["t0"])] == []
        waited.sleep(MAX_OUTAGE)


def test_a_model_of_many_small_arrays_is_no_flood(link: Link) -> None:
    many = {f"w{k}": np.full(9, k, np.float32) for k in range(900)}
    link.put("many", 1, many)
    (reply,) = GridWire(grid(link), Layout.of(many), "run").receive(["many"])
    assert reply.report is not None
    assert len(reply.report.update) == 900


def test_one_reply_that_cannot_be_had_keeps_nobody_from_theirs(link: Link) -> None:
    """Whose pieces the SuperLink cannot give, whatever the reason."""
    broken = set(link.put("a", 1)) - set(link.put("b", 2))
    original = link.PullObject

    def pull(request: Any) -> Any:
        if request.object_id in broken:
            raise BusyError(500)
        return original(request)

    link.PullObject = pull  # type: ignore[method-assign]
    wire = GridWire(grid(link), Layout.of(MODEL), "run")
    assert [reply.ticket for reply in wire.receive(["a", "b"])] == ["b"]


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_superlink_that_refuses_is_not_asked_again(
    link: Link, waited: Waited, status: int
) -> None:
    busy: Any = BusyGrid(link, [status] * 3)
    wire = GridWire(busy, Layout.of(MODEL), "run")
    with pytest.raises(BusyError):
        wire.present()
    with pytest.raises(BusyError):
        wire.send([Order("3", 0, 0, 0, 0)], MODEL)
    with pytest.raises(BusyError):
        [*wire.receive(["t0"])]
    assert not waited


def test_a_superlink_that_stays_broken_ends_the_run(link: Link, waited: Waited) -> None:
    """Also one that can say who is there, and nothing else: no round is burnt on it."""
    busy: Any = BusyGrid(link, [])
    wire = GridWire(busy, Layout.of(MODEL), "run")
    assert wire.present() == ["3", "4"]
    busy.errors = [500] * 99
    with pytest.raises(BusyError):
        wire.send([Order("3", 0, 0, 0, 0)], MODEL)
    assert MAX_OUTAGE < sum(waited) < MAX_OUTAGE + 5
    waited.clear()
    busy.errors = [500] * 99
    for _ in range(int(MAX_OUTAGE)):
        assert [*wire.receive(["t0"])] == []
        waited.sleep(1.0)
    waited.sleep(1.0)
    with pytest.raises(BusyError):
        [*wire.receive(["t0"])]
