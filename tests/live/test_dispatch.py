"""Clients are numbered once, orders are sent once, and each ticket is answered once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine.books import Books
from cafe.live.dispatch import UNREACHABLE, ClientRegistry, attach_vectors, work_of_each
from cafe.live.job_records import OpenRound
from cafe.live.live_run import LiveRun
from cafe.live.model_layout import Layout
from cafe.live.wire import Order, Reply, Report
from cafe.policies import mcu
from cafe.rounds.client_vectors import JobVectors
from cafe.rounds.jobs import Invitation, Status, Work
from tests.support.virtual_runs import VirtualWire, live, start


def test_a_client_keeps_its_number() -> None:
    books, clients = Books.new(np.empty(0, dtype=np.int64)), ClientRegistry()
    assert clients.update(["b", "a"], books) == (["b", "a"], [])
    assert clients.update(["a", "c"], books) == (["c"], ["b"])
    assert clients.update(["b", "b"], books) == (["b"], ["a", "c"])
    assert clients.names == ["b", "a", "c"]
    assert books.ledger.away.tolist() == [False, True, True]
    assert clients.refusals == [0, 0, 0]


def test_a_client_is_shown_by_its_label() -> None:
    clients = ClientRegistry(["17", "18"], ["phone", ""], [0, 0])
    assert [clients.display_name(name) for name in ("17", "18", "19")] == [
        "phone",
        "client 18",
        "client 19",
    ]


def opened(wire: VirtualWire, deadline: float = 0.5) -> tuple[LiveRun, OpenRound]:
    """A run whose first round is open."""
    run = live(wire, mcu(quorum=1, deadline=deadline))
    round_ = run._open()
    run._invite(round_)
    round_.until = deadline
    return run, round_


def note(run: LiveRun, round_: OpenRound, reply: Reply, moment: float = 0.1) -> None:
    run.dispatcher.note_reply(round_, reply, moment, frozenset())


def wire() -> VirtualWire:
    return VirtualWire(cafe.Federation(2, cafe.Constant(0.1)))


def report(**given: Any) -> Report:
    update = {name: np.ones_like(array) for name, array in start().items()}
    good: dict[str, Any] = {"invitation": 0, "version": 0, "examples": 7, "label": "me"}
    return Report(update, **good | given)


def test_an_accepted_report() -> None:
    run, round_ = opened(wire())
    (ticket, key), *_ = run.dispatcher.tickets.items()
    note(run, round_, Reply(ticket, report(took=0.06)))
    accepted = run.dispatcher.accepted[key]
    assert accepted.vector is not None
    assert accepted.vector.tolist() == [1.0] * 8
    assert round_.arrived.tolist() == [True, False]
    assert run.ledger.examples[0] == 7
    assert run.clients.display_name("c000") == "me"
    assert run.dispatcher.overhead == pytest.approx(0.04)
    assert ticket not in run.dispatcher.tickets


@pytest.mark.parametrize(
    ("reply", "moment", "status", "reason"),
    [
        ({"malformed": "no report"}, 0.1, Status.REFUSED, "no report"),
        ({"report": report(version=9)}, 0.1, Status.REFUSED, "version 9"),
        ({"lost": "it crashed"}, 0.1, Status.CRASHED, "it crashed"),
        ({"stopped": True}, 0.1, Status.STOPPED, ""),
        ({"report": report()}, 0.6, Status.STOPPED, ""),
    ],
    ids=["malformed", "rejected", "lost", "stopped", "late"],
)
def test_a_job_without_a_report(
    reply: dict[str, Any], moment: float, status: Status, reason: str
) -> None:
    run, round_ = opened(wire())
    ticket = next(iter(run.dispatcher.tickets))
    note(run, round_, Reply(ticket, **reply), moment)
    assert round_.jobs.status.tolist() == [status, Status.EXPECTED]
    assert reason in round_.records[0].reason
    assert run.clients.refusals == [int(status == Status.REFUSED), 0]
    # A second answer to the same ticket, and one to an unknown ticket, change nothing.
    note(run, round_, Reply(ticket, report()))
    note(run, round_, Reply("unknown", report()))
    assert round_.arrived.tolist() == [False, False]


def test_order_that_cannot_be_sent() -> None:
    at = wire()
    at.behave = lambda order: "unreachable" if order.number else "report"
    run, round_ = opened(at)
    assert [record.reason for record in round_.records] == ["", UNREACHABLE]
    assert len(run.dispatcher.tickets) == 1
    assert round_.outcome.downloads == 1


def test_clients_may_have_different_amounts_of_work() -> None:
    clients = np.arange(2)
    assert work_of_each(Invitation(clients)) == [Work(), Work()]
    amount = np.array([3, 5])
    for unit, work in (
        ("steps", Work(2)),
        ("epochs", Work(epochs=2)),
        ("seconds", Work(seconds=2)),
    ):
        each = work_of_each(Invitation(clients, work=work, amount=amount))
        assert [getattr(one, unit) for one in each] == [3, 5]


def test_a_common_offset_is_one_object() -> None:
    layout = Layout.of({"w": np.zeros(2, np.float32)})
    orders = [Order(f"{k}", k, round=0, version=0, seed=0) for k in range(3)]
    vectors = JobVectors(common=np.array([1.0, 2.0], np.float32))
    first, second, third = (order.offset for order in attach_vectors(orders, vectors, layout))
    assert first is second is third
    assert first is not None
    assert first["w"].tolist() == [1.0, 2.0]
