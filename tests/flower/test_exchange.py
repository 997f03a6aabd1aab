"""Messages are sent and replies collected until a time limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.exchange import SLACK, Answer, Exchange
from cafe.flower.inbox import RawReply
from tests.support.flower.fake_grid import NEVER, FakeGrid, train_messages
from tests.support.flower.superlink import BusyError

pytestmark = pytest.mark.usefixtures("identity")


class SlowInbox:
    """An inbox whose first request takes some seconds, and returns one reply at its end."""

    def __init__(self, grid: FakeGrid, takes: float) -> None:
        self._grid, self._takes = grid, takes

    def fetch(self, tickets: Collection[str]) -> Iterator[RawReply]:
        self._grid.now += self._takes
        for ticket in sorted(tickets)[:1]:
            yield RawReply(ticket, malformed="", at=self._grid.now)


def collected(takes: float, limit: float) -> list[Answer]:
    grid = FakeGrid({1: [NEVER]})
    exchange: Any = Exchange(grid, print, grid.clock, grid.sleep)
    exchange._connection._inbox = SlowInbox(grid, takes)
    return list(exchange.run(train_messages([1]), limit))


def test_last_request_may_end_a_little_after_the_limit() -> None:
    (answer,) = collected(takes=2.0 + SLACK / 2, limit=2.0)
    assert answer.seconds == 2.0  # it arrived by the limit, as far as is known


def test_reply_of_a_delayed_request_is_late() -> None:
    assert collected(takes=2.0 + 2 * SLACK, limit=2.0) == []


def test_answers_have_the_order_of_the_messages() -> None:
    grid = FakeGrid({5: [3.0], 6: [1.0], 7: [2.0]})
    exchange = Exchange(grid, print, grid.clock, grid.sleep)
    answers = exchange.run(train_messages([7, 5, 6]), None)
    assert [answer.position for answer in answers] == [0, 1, 2]
    assert [answer.is_report for answer in answers] == [True] * 3
    assert [round(answer.seconds) for answer in answers] == [2, 3, 1]


def test_a_failing_superlink_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cafe.flower.retry.PAUSE", 0.0)
    said: list[str] = []
    grid = FakeGrid({1: [1.0]})
    push, failures = grid.push_messages, [BusyError(503), BusyError(500)]

    def fail_first(messages: Any) -> Any:
        if failures:
            raise failures.pop()
        return push(messages)

    grid.push_messages = fail_first  # type: ignore[method-assign]
    (answer,) = Exchange(grid, said.append, grid.clock, grid.sleep).run(train_messages([1]), 8.0)
    assert answer.is_report
    assert said == ["The SuperLink answered with an error (500). Retrying."]


def test_each_ticket_without_an_answer_is_a_refused_message() -> None:
    grid = FakeGrid({1: [1.0], 2: [1.0]}, refused={1})
    first, second = Exchange(grid, print, grid.clock, grid.sleep).run(train_messages([1, 2]), 8.0)
    assert (first.position, first.message, first.is_report) == (0, None, False)
    assert second.is_report
