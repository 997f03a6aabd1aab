"""A controller's policy closes watched rounds early; a self-tuning one needs no first deadline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

import cafe
from cafe.control import SelfTuning
from cafe.errors import InputError
from cafe.rounds import COMMIT, FAIL, Invitation, Wait
from tests.support.flower.fake_grid import (
    NEVER,
    Fails,
    FakeGrid,
    log_rows,
    logged,
    nodes_of,
    train_messages,
    watched,
)

pytestmark = pytest.mark.usefixtures("identity", "flower_log")
POLL = 0.2  # seconds: how exactly an arrival time is known
SLOW = cafe.policies.mcu(quorum=1, deadline=100.0)


def test_close_of_the_policy_sees_who_reported_and_when(tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []

    def close(ledger: Any, waiting: Any) -> Any:
        """Close 3 s after the second report, which is waited for first."""
        clients, arrived = waiting.jobs.client.tolist(), waiting.arrived - ledger.opened
        seen.append((clients, arrived.tolist(), waiting.invited, waiting.outstanding))
        if waiting.reports < 2:
            return Wait(ledger.opened + 100.0, 2)
        end = float(waiting.arrived.max()) + 3.0
        return Wait(end, 9) if ledger.now < end else COMMIT

    grid = FakeGrid({7: [NEVER], 5: [2.0], 6: [1.0], 8: [Fails(1.5)]})
    watcher = watched(grid, log=tmp_path / "log.csv", controller=replace(SLOW, close=close))
    assert nodes_of(watcher.send_and_receive(train_messages([7, 5, 6, 8]))) == [5, 6, 8]
    assert grid.now == pytest.approx(5.0, abs=2 * POLL)
    first, second, last = seen
    assert first == ([], [], 4, 4)
    assert second[0] == last[0] == [1, 2]  # in the order of the messages
    np.testing.assert_allclose(last[1], [2.0, 1.0], atol=POLL)
    assert last[2:] == (4, 1)
    rows = {row["client"]: row for row in log_rows(tmp_path / "log.csv")}
    assert rows["7"]["status"] == "cancelled"
    assert [float(rows[n]["deadline"]) for n in "756"] == pytest.approx([grid.now] * 3, abs=1e-3)


def test_quorum_decides_whether_a_round_that_was_closed_early_has_succeeded() -> None:
    policy = replace(
        cafe.policies.mcu(quorum=2, deadline=100.0),
        close=lambda ledger, waiting: FAIL if waiting.reports else Wait(ledger.opened + 100.0, 1),
    )
    grid = FakeGrid({1: [1.0], 2: [2.0, 1.0]})
    assert nodes_of(watched(grid, controller=policy).send_and_receive(train_messages([1, 2])))
    assert grid.trained(1) == 2  # the first attempt had one report, the second two at once


def test_policy_that_invites_in_an_open_round_is_refused() -> None:
    policy = replace(SLOW, close=lambda ledger, waiting: Invitation(np.array([0])))
    watcher = watched(FakeGrid({1: [NEVER]}), controller=policy)
    with pytest.raises(InputError, match="only the strategy invites"):
        watcher.send_and_receive(train_messages([1]))


def test_self_tuning_finds_a_deadline_from_a_cold_start(flower_log: Any) -> None:
    times: dict[int, list[float | Fails]] = {n: [5.0 + 0.5 * n] for n in range(1, 6)}
    grid = FakeGrid(times | {6: [NEVER]})
    watcher = watched(grid, controller=SelfTuning())
    for _ in range(3):
        watcher.send_and_receive(train_messages(range(1, 7)))
    # No round waits for the client that never answers as long as the first limit, an hour.
    assert grid.now < 300.0
    first, *_, last = watcher.policy_changes
    assert first.deadline == 3600.0
    assert last.deadline is not None
    assert 5.5 < last.deadline < 40.0
    assert last.reason
    assert f"Round {last.round + 1}: {last}" in logged(flower_log)
