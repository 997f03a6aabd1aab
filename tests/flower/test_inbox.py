"""Replies are downloaded piece by piece, and no client can delay or end the server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_object_tree

from cafe.flower.grid import GridWire
from cafe.flower.inbox import Inbox, RawReply
from cafe.flower.retry import Retry
from cafe.live.model_layout import Layout
from tests.support.flower.superlink import MODEL, BusyError, Link, grid, made


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


def test_complete_replies_are_returned_together(link: Link, wire: GridWire) -> None:
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


def test_slow_upload_does_not_block_others_and_is_accepted_when_complete(link: Link) -> None:
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
    assert link.asked == [["good", "slow"]]  # and not requested again


def test_reply_that_is_no_longer_awaited_is_removed(link: Link) -> None:
    inbox = inbox_of(link, 10_000)
    slow = link.put("slow", 1)
    link.pieces[[*slow][-1]] = None
    assert not fetched(inbox, "slow")
    assert not fetched(inbox, "other")
    pulled = len(link.pulled)
    assert not fetched(inbox, "other")
    assert len(link.pulled) == pulled


@pytest.mark.parametrize("way", ["garbage", "empty", "child", "gone", "other kind"])
def test_malformed_message_affects_only_its_ticket(link: Link, wire: GridWire, way: str) -> None:
    pieces = link.put("bad", 1)
    link.put("good", 2)
    head, _ = link.announced["bad"]
    root = head.metadata.message_id
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
        head.metadata.message_id = leaf
        tree = get_object_tree(made(RecordDict()))
        del tree.children[:]
        tree.object_id = leaf
        link.announced["bad"] = (head, tree)
    replies = {reply.ticket: reply for reply in wire.receive({"bad", "good"})}
    assert replies["bad"].malformed
    assert replies["bad"].report is None
    assert replies["good"].report is not None


def test_reply_that_is_too_large_is_rejected(link: Link) -> None:
    pieces = link.put("large", 1)
    size = sum(map(len, pieces.values()))
    exact = inbox_of(link, size)
    assert fetched(exact, "large")["large"].message is not None
    link.put("large", 1)
    link.pulled.clear()
    letter = fetched(inbox_of(link, len(next(iter(pieces.values()))) - 1), "large")["large"]
    assert "more than" in letter.malformed
    assert len(link.pulled) < len(pieces)  # the rest is not even fetched


def test_chunk_listed_many_times_is_not_expanded(link: Link) -> None:
    """An array lists its pieces of data, and may list one piece many times."""
    pieces = link.put("bomb", 1)
    name, content = next((n, c) for n, c in pieces.items() if b"arraychunk_ids" in c)
    head, body = content.split(b"\x00", 1)
    grown = body.replace(b'"arraychunk_ids": [0]', b'"arraychunk_ids": [' + b"0, " * 999 + b"0]")
    assert grown != body
    kind, children, _ = head.decode().split(" ", 2)
    link.pieces[name] = f"{kind} {children} {len(grown)}".encode() + b"\x00" + grown
    letter = fetched(inbox_of(link, 20_000), "bomb")["bomb"]
    assert "inflates" in letter.malformed, letter


def test_too_many_objects_are_not_fetched(link: Link) -> None:
    link.put("flood", 1)
    _, tree = link.announced["flood"]
    for k in range(20_000):
        tree.children.add().object_id = f"{k}"
    inbox = inbox_of(link, 10_000)
    assert "objects" in fetched(inbox, "flood")["flood"].malformed
    assert not link.pulled


def test_replies_that_share_objects_are_complete(link: Link, wire: GridWire) -> None:
    for ticket in ("a", "b", "c"):
        link.put(ticket, 5)  # equal updates are the same pieces to Flower
    assert [reply.report is not None for reply in wire.receive({"a", "b", "c"})] == [True] * 3


def test_other_flower_versions_fall_back_to_one_reply_at_a_time() -> None:
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


def test_model_of_many_small_arrays_is_accepted(link: Link) -> None:
    many = {f"w{k}": np.full(9, k, np.float32) for k in range(900)}
    link.put("many", 1, many)
    (reply,) = GridWire(grid(link), Layout.of(many), "run").receive(["many"])
    assert reply.report is not None
    assert len(reply.report.update) == 900


def test_unavailable_reply_does_not_block_others(link: Link) -> None:
    """A reply whose pieces the SuperLink cannot return, for any reason."""
    broken = set(link.put("a", 1)) - set(link.put("b", 2))
    original = link.PullObject

    def pull(request: Any) -> Any:
        if request.object_id in broken:
            raise BusyError(500)
        return original(request)

    link.PullObject = pull  # type: ignore[method-assign]
    wire = GridWire(grid(link), Layout.of(MODEL), "run")
    assert [reply.ticket for reply in wire.receive(["a", "b"])] == ["b"]
