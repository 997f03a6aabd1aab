"""CAFe's strategy with stock ClientApps, tuned by a controller that knows nothing at first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.control import SelfTuning
from cafe.errors import InfeasibleError
from cafe.results import load
from tests.support.choosing import Doubling
from tests.support.flower.fake_grid import logged
from tests.support.flower.stock_grid import StockGrid
from tests.support.flower.strategy_runs import Run

pytestmark = pytest.mark.usefixtures("identity", "flower_log")


def test_strategy_finds_a_deadline_from_a_cold_start(
    grid: StockGrid, run: Run, tmp_path: Path, flower_log: Any
) -> None:
    grid.delay = lambda node, message: 3.0 + node
    run(SelfTuning(), 4)
    history = load(tmp_path / "run").history
    assert history.updates == 4
    assert history.virtual_time < 400.0  # the first deadline alone is an hour
    first, *others = history.policy_changes
    assert first.deadline == 3600.0
    last = [change for change in others if change.reason][-1]
    assert last.deadline is not None
    assert 6.0 < last.deadline < 60.0
    assert f"Round {last.round}: {last}" in logged(flower_log)


def test_resumed_strategy_continues_with_the_state_of_its_controller(
    grid: StockGrid, run: Run, tmp_path: Path
) -> None:
    """The first run ends because its third round in a row fails, which the state remembers."""
    grid.delay = lambda node, message: 1.0
    controller = Doubling(quorum=3, first=0.1)
    with pytest.raises(InfeasibleError, match="3 rounds in a row have failed"):
        run(controller, 1, patience=3)
    run(controller, 1, patience=20)
    changes = load(tmp_path / "run").history.policy_changes
    assert [change.deadline for change in changes] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6])
    assert [change.round for change in changes] == [0, 1, 2, 3, 4]
