"""What a controller sees of the clients of a watched Grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from tests.support.flower.fake_grid import NEVER, FakeGrid, train_messages, watched

pytestmark = pytest.mark.usefixtures("identity")


def test_controller_sees_when_clients_were_last_merged() -> None:
    ledgers: list[Any] = []

    def controller(ledger: Any, seen: Any) -> float:
        ledgers.append(ledger)
        return 4.0

    grid = FakeGrid({1: [1.0], 2: [NEVER, 1.0]}, online=[1])
    watcher = watched(grid, controller, 1)
    for _ in range(3):
        watcher.send_and_receive(train_messages([1, 2]))
    last = ledgers[-1]
    assert [*last.merged] == [2, 1]
    assert [*last.last_round] == [1, 1]
    np.testing.assert_allclose(last.last_start, [4.0, 4.0], atol=1e-6)
    assert [*last.away] == [False, True]
    assert (last.round, last.version) == (2, 2)
