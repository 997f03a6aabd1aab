"""Watched rounds on a Grid in memory, whose clients reply at times that are written down here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord, Message, RecordDict

import cafe
from cafe.errors import InfeasibleError, InputError
from cafe.flower import watch
from tests.support.flower.fake_grid import (
    NEVER,
    Fails,
    FakeGrid,
    leaves,
    log_rows,
    logged,
    nodes_of,
    train_messages,
    watched,
)

pytestmark = pytest.mark.usefixtures("identity", "flower_log")
POLL = 0.2  # seconds: how exactly an arrival time is known
POLICY = cafe.policies.mcu(quorum=1, deadline=8.0)


def test_replies_count_until_the_deadline_and_not_after(tmp_path: Path) -> None:
    grid = FakeGrid({1: [1.0], 2: [7.9], 3: [8.0], 4: [8.1]})
    replies = watched(grid, 8.0, 2, tmp_path / "log.csv").send_and_receive(
        train_messages(range(1, 5))
    )
    assert nodes_of(replies) == [1, 2, 3]
    assert grid.now == pytest.approx(8.0, abs=1e-6)
    found = {int(row["client"]): row for row in log_rows(tmp_path / "log.csv")}
    assert 1.0 <= float(found[1]["seconds"]) <= 1.0 + POLL
    assert 7.9 <= float(found[2]["seconds"]) <= 8.0
    assert float(found[3]["seconds"]) == 8.0
    assert found[4]["seconds"] == ""
    assert {row["deadline"] for row in found.values()} == {"8.000"}
    assert [found[k]["status"] for k in range(1, 5)] == ["reported"] * 3 + ["late"]


def test_round_closes_when_every_client_has_answered() -> None:
    grid = FakeGrid({1: [1.0], 2: [2.0], 3: [Fails(0.5)]})
    watched(grid, 8.0, 2).send_and_receive(train_messages([1, 2, 3]))
    assert 2.0 <= grid.now <= 2.0 + POLL


def test_replies_are_requested_every_fifth_of_a_second_and_at_the_deadline() -> None:
    grid = FakeGrid({1: [0.5], 2: [NEVER]})
    watched(grid, 1.1, 1).send_and_receive(train_messages([1, 2]))
    times = sorted({round(pull, 6) for pull in grid.pulls})
    assert times == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.1]


def test_messages_expire_shortly_after_the_deadline() -> None:
    grid = FakeGrid({1: [1.0]})
    given = Message(RecordDict({"arrays": ArrayRecord([np.ones(1)])}), 1, "train", group_id="g")
    watched(grid, 8.0).send_and_receive([given])
    (sent,) = grid.pushed
    assert sent.metadata.ttl == 13.0
    assert sent.metadata.group_id == "g"
    assert sent.content is given.content
    assert given.metadata.ttl == 12 * 3600  # the strategy's message is not changed


def test_failed_round_is_retried_with_the_same_content(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only client 1 reports at first; after the retry, all three do."""
    grid = FakeGrid({1: [1.0], 2: [NEVER, 2.0], 3: [9.0, 3.0]})
    watcher = watched(grid, 8.0, 2, tmp_path / "log.csv")
    replies = watcher.send_and_receive(train_messages([1, 2, 3]))
    assert nodes_of(replies) == [1, 2, 3]
    assert len(grid.pushed) == 6
    assert len({id(message.content) for message in grid.pushed}) == 1
    assert [reply.metadata.reply_to_message_id for reply in replies] == [
        "message-3",
        "message-4",
        "message-5",
    ]
    assert 11.0 <= grid.now <= 11.0 + POLL
    table = [
        (r["round"], r["attempt"], r["client"], r["status"]) for r in log_rows(tmp_path / "log.csv")
    ]
    assert table == [
        ("1", "1", "1", "reported"),
        ("1", "1", "2", "late"),
        ("1", "1", "3", "late"),
        ("1", "2", "1", "reported"),
        ("1", "2", "2", "reported"),
        ("1", "2", "3", "reported"),
    ]
    said = logged(caplog)
    assert (
        "Round 1: 1 of 3 clients reported within 8 s (2 late), 2 are required. Failed: the model "
        "stays as it is." in said
    )
    assert "Round 1, attempt 2: 3 of 3 clients reported within 8 s. Succeeded." in said


def test_errors_do_not_count_for_the_quorum_and_are_logged_as_such(tmp_path: Path) -> None:
    grid = FakeGrid({1: [1.0], 2: [Fails(2.0, "ValueError: line\nbreak"), 1.0], 3: [leaves(3.0)]})
    replies = watched(grid, 8.0, 2, tmp_path / "log.csv").send_and_receive(
        train_messages([1, 2, 3])
    )
    assert [reply.has_error() for reply in replies] == [False, False, True]  # for the strategy
    first = log_rows(tmp_path / "log.csv")[:3]
    assert [row["status"] for row in first] == ["reported", "failed", "offline"]
    # A failure is no missed deadline: the client was waited for until its error arrived.
    assert first[1]["seconds"] == ""
    assert 2.0 <= float(first[1]["deadline"]) <= 2.0 + POLL
    assert first[1]["error"] == "its training function failed: ValueError: line break"
    assert (first[2]["seconds"], first[2]["deadline"]) == ("", "8.000")


def test_round_that_fails_too_often_stops_the_run_with_reasons() -> None:
    grid = FakeGrid({1: [NEVER], 2: [Fails(1.0)], 3: [leaves(1.0)], 4: [1.0]})
    with pytest.raises(InfeasibleError) as raised:
        watched(grid, 8.0, 2, patience=2).send_and_receive(train_messages([1, 2, 3, 4]))
    assert str(raised.value) == (
        "Round 1 failed 2 times in a row. In the last attempt 1 of 4 clients reported within 8 s, "
        "and 2 are required: client 1 was late, client 2 failed (its training function failed: "
        "ValueError: no data), client 3 was offline. Lengthen the deadline, lower the quorum, or "
        "see why the clients are slow."
    )
    assert grid.trained(1) == 2


def test_many_silent_clients_are_counted_and_not_all_named() -> None:
    grid = FakeGrid({k: [NEVER] for k in range(1, 9)})
    with pytest.raises(InfeasibleError, match=r"client 5 was late, 3 more did not report\."):
        watched(grid, 8.0, 1, patience=1).send_and_receive(train_messages(range(1, 9)))


def test_round_in_which_every_client_fails_is_tried_three_times() -> None:
    grid = FakeGrid({1: [Fails(1.0)], 2: [Fails(1.0)]})
    with pytest.raises(InfeasibleError, match=r"failed 3 times.*ValueError: no data.*the app\."):
        watched(grid, 8.0, 1).send_and_receive(train_messages([1, 2]))
    assert grid.trained(1) == 3


def test_refused_messages_are_failures() -> None:
    grid = FakeGrid({1: [1.0], 2: [1.0]}, refused={1})
    watcher = watched(grid, 8.0, 1)
    assert nodes_of(watcher.send_and_receive(train_messages([1, 2]))) == [2]
    with pytest.raises(InfeasibleError, match="did not accept its message"):
        watched(FakeGrid({1: [1.0]}, refused={1}), 8.0).send_and_receive(train_messages([1]))


def test_offline_clients_are_replaced_in_a_retry() -> None:
    grid = FakeGrid({1: [1.0], 2: [leaves(1.0)], 3: [2.0], 4: [2.0]})

    def leave(seconds: float, sleep: Callable[[float], None] = grid.sleep) -> None:
        sleep(seconds)
        grid.online = [1, 3, 4] if grid.now >= 1.0 else grid.online

    grid.sleep = leave  # type: ignore[method-assign]
    replies = watched(grid, 8.0, 2).send_and_receive(train_messages([1, 2]))
    first, second = sorted(nodes_of(replies))
    assert first == 1
    assert second in (3, 4)


def test_clients_with_content_of_their_own_are_not_replaced() -> None:
    grid = FakeGrid({1: [1.0], 2: [leaves(1.0), 1.0], 3: [1.0]})
    replies = watched(grid, 8.0, 2).send_and_receive(train_messages([1, 2], shared=False))
    assert nodes_of(replies) == [1, 2]
    assert grid.trained(3) == 0


def test_retry_waits_for_enough_clients_but_not_for_ever() -> None:
    grid = FakeGrid({1: [1.0], 2: [NEVER]}, online=[1])
    with pytest.raises(InfeasibleError, match="1 of 2 required clients are online, and no more"):
        watched(grid, 8.0, 2, wait=30.0).send_and_receive(train_messages([1, 2]))
    assert 38.0 <= grid.now <= 40.0


def test_a_target_closes_the_round_early(tmp_path: Path) -> None:
    grid = FakeGrid({1: [1.0], 2: [2.0], 3: [6.0]})
    watcher = watched(grid, 8.0, 1, tmp_path / "log.csv", target=2)
    assert nodes_of(watcher.send_and_receive(train_messages([1, 2, 3]))) == [1, 2]
    last = log_rows(tmp_path / "log.csv")[2]
    assert last["status"] == "cancelled"
    assert 2.0 <= float(last["deadline"]) <= 2.0 + POLL  # it was waited for until then


def test_other_messages_have_the_timeout_of_the_strategy(tmp_path: Path) -> None:
    grid = FakeGrid({1: [NEVER], 2: [NEVER]}, evaluation=20.0)
    watcher = watched(grid, 8.0, 2, tmp_path / "log.csv")
    asked = train_messages([1, 2], kind="evaluate")
    assert not [*watcher.send_and_receive(asked, timeout=5.1)]
    assert grid.now == pytest.approx(5.1)
    assert grid.pushed == asked  # as the strategy made them
    assert len([*watcher.send_and_receive(train_messages([1, 2], kind="query.x"))]) == 2
    assert 25.1 <= grid.now <= 25.1 + POLL
    assert not log_rows(tmp_path / "log.csv")


def test_nothing_to_send_is_no_round(tmp_path: Path) -> None:
    watcher = watched(FakeGrid({1: [1.0]}), 8.0, 3, tmp_path / "log.csv")
    assert not [*watcher.send_and_receive([])]
    assert not log_rows(tmp_path / "log.csv")


def test_training_must_not_be_mixed_with_other_messages() -> None:
    mixed = train_messages([1]) + train_messages([2], kind="evaluate")
    with pytest.raises(InputError, match="separate calls"):
        watched(FakeGrid({1: [1.0], 2: [1.0]}), 8.0).send_and_receive(mixed)


def test_quorum_above_the_number_of_messages_is_explained() -> None:
    watcher = watched(FakeGrid({1: [1.0], 2: [1.0]}), 8.0, 3)
    with pytest.raises(InputError, match=r"to 2 clients, but the quorum is 3.*min_train_nodes"):
        watcher.send_and_receive(train_messages([1, 2]))
    watcher = watched(FakeGrid({1: [1.0], 2: [1.0]}), 8.0, 1, target=3)
    with pytest.raises(InputError, match=r"the target is 3.*min_train_nodes to at least 3"):
        watcher.send_and_receive(train_messages([1, 2]))


def test_all_else_is_passed_on() -> None:
    grid = FakeGrid({1: [1.0], 2: [1.0]})
    watcher: Any = watched(grid, 8.0)
    watcher.set_run("run")
    assert watcher.run == grid.run == "run"
    assert watcher.get_node_ids() == [1, 2]
    assert [node.node_id for node in watcher.get_nodes()] == [1, 2]
    (message,) = train_messages([1])
    (ticket,) = watcher.push_messages([message])
    assert grid.pushed == [message]
    assert not watcher.pull_messages([ticket])
    grid.now = 1.0
    assert nodes_of(watcher.pull_messages([ticket])) == [1]
    made = watcher.create_message(message.content, "query", 2, "g", 3.0)
    assert (made.metadata.dst_node_id, made.metadata.ttl) == (2, 3.0)
    assert watcher.evaluation == grid.evaluation
    with pytest.raises(AttributeError):
        _ = watcher.nothing_like_this


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"deadline": 0}, "deadline must be a positive number"),
        ({"deadline": float("nan")}, "deadline must be a positive number"),
        ({"deadline": "8"}, "deadline must be a positive number of seconds, or a function"),
        ({"deadline": True}, "deadline must be a positive number of seconds, or a function"),
        ({"deadline": lambda: 8.0}, "deadline must be a positive number of seconds, or a function"),
        ({}, "needs a deadline: give deadline= or controller="),
        ({"deadline": POLICY}, "Got the policy mcu.*: pass it as controller="),
        ({"controller": 8.0}, r"Expected a policy, .* or a controller.* Got 8\.0"),
        ({"controller": POLICY, "deadline": 8.0}, r"deadline cannot be given with controller"),
        ({"controller": POLICY, "quorum": 2}, r"quorum cannot be given with controller.* Got 2"),
        ({"controller": POLICY, "target": 2}, r"target cannot be given with controller.* Got 2"),
        ({"deadline": 8.0, "quorum": 0}, "quorum must be a whole number"),
        ({"deadline": 8.0, "quorum": 2.5}, "quorum must be a whole number"),
        ({"deadline": 8.0, "target": -1}, "target must be a whole number"),
        ({"deadline": 8.0, "quorum": 3, "target": 2}, "target must be at least the quorum"),
        ({"deadline": 8.0, "patience": 0}, "patience must be a whole number"),
        ({"deadline": 8.0, "wait": -1}, "wait must be a positive number"),
        ({"deadline": 8.0, "log": 3}, "log must be the path"),
        ({"deadline": 8.0, "log": "none/such/log.csv"}, "the log cannot be written"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        watch(FakeGrid({1: [1.0]}), **arguments)


def test_only_a_grid_can_be_watched() -> None:
    with pytest.raises(InputError, match="grid must be the Grid that Flower passes"):
        watch(None, 8.0)  # type: ignore[arg-type]
