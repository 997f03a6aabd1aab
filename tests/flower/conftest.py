"""The federations that test files use one after the other, and limits for busy machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.flower.waiting import LIMIT

if TYPE_CHECKING:
    from flwr.serverapp.strategy import Result

    from cafe.flower.lab import Lab
    from cafe.flower.lab.paths import LabPaths, LabState
    from tests.support.flower.stock_grid import StockGrid
    from tests.support.flower.strategy_runs import Run


@pytest.fixture(scope="session", autouse=True)
def long_limits() -> Iterator[None]:
    """Longer time limits: processes and the SuperLink have minutes to start and to answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cafe.flower.lab.commands.ANSWER_LIMIT", LIMIT)
        patch.setattr("cafe.flower.lab.startup.START_LIMIT", LIMIT)
        patch.setattr("cafe.flower.lab.startup.OFFLINE_LIMIT", LIMIT)
        yield


@pytest.fixture(scope="session", autouse=True)
def eager_nodes() -> Iterator[None]:
    """SuperNodes that ask for work more often; with cold start they are Flower's own."""
    from cafe.flower.lab import commands
    from tests.support.flower.eager_node import eager_supernode

    original = commands.supernode

    def supernode(paths: LabPaths, state: LabState, name: str) -> list[str]:
        command = original(paths, state, name)
        return command if state.cold else eager_supernode(command)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "supernode", supernode)
        yield


@pytest.fixture(scope="session")
def shared() -> Iterator[Lab]:
    """Nodes with keys and TLS, started once because the start is slow."""
    from tests.support.flower.trial import NODES, federation

    with federation(NODES) as made:
        yield made


@pytest.fixture(scope="session")
def stock_lab() -> Iterator[Lab]:
    """Three nodes with keys and TLS, and an app that does not use CAFe."""
    from tests.support.flower.stock_runs import CLIENTS, NUMPY_APP
    from tests.support.flower.trial import federation

    with federation(CLIENTS, NUMPY_APP) as made:
        yield made


@pytest.fixture(scope="session")
def torch_lab() -> Iterator[Lab]:
    """Two nodes without TLS, which have imported PyTorch."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cafe-fl[torch]'")
    from tests.support.flower.stock_runs import TORCH_APP
    from tests.support.flower.trial import federation

    with federation(2, TORCH_APP, insecure=True) as made:
        yield made


@pytest.fixture(scope="module")
def lab(shared: Lab) -> Lab:
    """The shared federation with all its nodes restored."""
    from tests.support.flower.trial import NODES

    shared.up(nodes=NODES)
    return shared


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids that Flower sets in the process of an app, and needs for messages."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture
def flower_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Flower's logger does not pass its lines on; here it does."""
    from flwr.supercore.logger import FLOWER_LOGGER

    monkeypatch.setattr(FLOWER_LOGGER, "propagate", True)
    caplog.set_level("INFO", "flwr")
    return caplog


@pytest.fixture
def grid(monkeypatch: pytest.MonkeyPatch) -> StockGrid:
    """Three nodes in memory, with a stock ClientApp."""
    from tests.support.flower.stock_grid import StockGrid, stock_app
    from tests.support.flower.strategy_runs import evaluate, train

    return StockGrid(stock_app(train, evaluate), 3).install(monkeypatch)


@pytest.fixture
def run(grid: StockGrid, tmp_path: Path) -> Run:
    """Starts CAFe's strategy on the grid."""
    from cafe.flower import Strategy
    from tests.support.flower.stock_grid import named_arrays
    from tests.support.flower.strategy_runs import START

    def start(policy: Any, rounds: int = 1, /, starting: Any = None, **options: Any) -> Result:
        usual = {"fraction_evaluate": 0, "patience": 5}
        strategy = Strategy(policy, folder=tmp_path / "run", **(usual | options))
        return strategy.start(grid, named_arrays(START), rounds, **(starting or {}))

    return start
