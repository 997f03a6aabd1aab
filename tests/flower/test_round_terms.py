"""Deadlines, quorums and targets of watched rounds that a function or a controller chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import cafe
from cafe.controllers import Choice
from cafe.errors import InputError
from tests.support.flower.fake_grid import (
    NEVER,
    FakeGrid,
    log_rows,
    logged,
    nodes_of,
    train_messages,
    watched,
)

pytestmark = pytest.mark.usefixtures("identity")
POLL = 0.2  # seconds: how exactly an arrival time is known


def test_a_function_chooses_the_deadline_of_each_round(tmp_path: Path) -> None:
    seen_by_call: list[tuple[int, int, Any]] = []

    def choose(ledger: Any, seen: Any) -> float:
        seen_by_call.append((ledger.round, ledger.version, seen))
        return 2.0 if seen is None else float(seen.seconds[0]) + 3.0

    grid = FakeGrid({1: [1.0], 2: [NEVER]})
    watcher = watched(grid, choose, 1, tmp_path / "log.csv")
    for _ in range(2):
        watcher.send_and_receive(train_messages([1, 2]))
    first, second = seen_by_call
    assert first == (0, 0, None)
    assert second[:2] == (1, 1)
    log = log_rows(tmp_path / "log.csv")
    assert second[2].seconds[0] == pytest.approx(float(log[0]["seconds"]), abs=1e-3)
    assert np.isnan(second[2].seconds[1])
    assert [*second[2].deadline] == [2.0, 2.0]
    assert [*second[2].client] == ["1", "2"]
    assert float(log[3]["deadline"]) == pytest.approx(float(log[0]["seconds"]) + 3.0, abs=1e-3)


def test_a_controller_chooses_deadline_quorum_and_target() -> None:
    def controller(ledger: Any, seen: Any) -> Any:
        assert ledger.clients == 3
        return cafe.policies.mcu(quorum=2, deadline=4.0 + ledger.round, target=2)

    grid = FakeGrid({1: [1.0], 2: [4.5], 3: [NEVER]})
    watched(grid, controller=controller).send_and_receive(train_messages([1, 2, 3]))
    # The first attempt lasts 4 s, and has one report; the second closes at its second report.
    assert 8.5 <= grid.now <= 8.5 + POLL


@pytest.mark.parametrize("kind", ["policy", "fixed"])
def test_policies_and_cafes_controllers_can_be_used(kind: str) -> None:
    from cafe.controllers import Fixed

    policy = cafe.policies.mcu(quorum=2, deadline=4.0)
    grid = FakeGrid({1: [1.0], 2: [2.0], 3: [NEVER]})
    watcher = watched(grid, controller=policy if kind == "policy" else Fixed(policy))
    assert nodes_of(watcher.send_and_receive(train_messages([1, 2, 3]))) == [1, 2]
    assert grid.now == pytest.approx(4.0)


def growing(ledger: Any, seen: Any) -> Choice:
    """A deadline of 1, 2, 3 ... seconds, which only the controller's state tells."""
    calls = (ledger.control or 0) + 1
    policy = cafe.policies.mcu(quorum=2, deadline=float(calls))
    return Choice(policy, calls, "" if calls == 1 else "Too few clients have reported.")


def test_state_and_reasons_of_a_controller_are_kept_and_logged(flower_log: Any) -> None:
    grid = FakeGrid({1: [0.5], 2: [1.5]})
    watcher = watched(grid, controller=growing)
    assert nodes_of(watcher.send_and_receive(train_messages([1, 2]))) == [1, 2]
    watcher.send_and_receive(train_messages([1, 2]))
    # The first round fails after 1 s and is repeated with 2 s; the next one has 3 s.
    assert [(c.round, c.deadline, c.quorum, c.reason) for c in watcher.policy_changes] == [
        (0, 1.0, 2, ""),
        (1, 2.0, 2, "Too few clients have reported."),
        (2, 3.0, 2, "Too few clients have reported."),
    ]
    said = [line for line in logged(flower_log) if ": deadline" in line]
    assert said == [
        "Round 1: deadline 1 s, quorum 2.",
        "Round 1: deadline 2 s, quorum 2. Too few clients have reported.",
        "Round 2: deadline 3 s, quorum 2. Too few clients have reported.",
    ]


def test_controller_cannot_ask_for_more_reports_than_the_strategy_invites(
    flower_log: Any,
) -> None:
    policy = cafe.policies.mcu(quorum=5, deadline=8.0, target=6)
    watcher = watched(FakeGrid({1: [1.0], 2: [2.0]}), controller=policy)
    assert nodes_of(watcher.send_and_receive(train_messages([1, 2]))) == [1, 2]
    assert "Round 1: deadline 8 s, quorum 5. The strategy invites only 2." in logged(flower_log)


POLICY = cafe.policies.mcu(quorum=1, deadline=2.0)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (-1.0, "deadline must be a positive number"),
        (None, "Got None"),
        (POLICY, r"Got the policy mcu.* from the function: .* pass it as controller="),
        (Choice(POLICY), "Got a Choice from the function"),
    ],
)
def test_useless_answers_of_functions_are_explained(answer: Any, text: str) -> None:
    watcher = watched(FakeGrid({1: [1.0]}), lambda ledger, seen: answer)
    with pytest.raises(InputError, match=text):
        watcher.send_and_receive(train_messages([1]))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (2.0, r"must return a Policy or a Choice\. Got 2\.0"),
        (cafe.policies.fedavg(fraction=0.5), "has no deadline"),
        (Choice(POLICY, state=(1,)), "survives a JSON round trip"),
    ],
)
def test_useless_answers_of_controllers_are_explained(answer: Any, text: str) -> None:
    watcher = watched(FakeGrid({1: [1.0]}), controller=lambda ledger, seen: answer)
    with pytest.raises(InputError, match=text):
        watcher.send_and_receive(train_messages([1]))
