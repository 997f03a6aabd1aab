"""Flower's own strategies with a watched Grid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp import strategy as stock
from flwr.serverapp.strategy import FedAvg, Strategy

from tests.support.flower.fake_grid import NEVER, Fails, FakeGrid, log_rows, step, watched

pytestmark = pytest.mark.usefixtures("identity")


def begin(strategy: Strategy, grid: Any, rounds: int) -> tuple[bytes, Any]:
    """The bytes of the final model, and the result."""
    result = strategy.start(
        grid,
        ArrayRecord([np.linspace(0.0, 1.0, 6).reshape(2, 3), np.zeros(3)]),
        num_rounds=rounds,
        train_config=ConfigRecord({"lr": 0.1}),
        timeout=3.0,
    )
    return b"".join(a.tobytes() for a in result.arrays.to_numpy_ndarrays()), result


CLIENTS = 8
EVERYONE: dict[str, Any] = {
    "min_train_nodes": CLIENTS,
    "min_evaluate_nodes": CLIENTS,
    "min_available_nodes": CLIENTS,
}
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "FedAvg": lambda: FedAvg(**EVERYONE),
    "FedAvgM": lambda: stock.FedAvgM(**EVERYONE, server_momentum=0.9),
    "FedAdagrad": lambda: stock.FedAdagrad(**EVERYONE),
    "FedAdam": lambda: stock.FedAdam(**EVERYONE),
    "FedYogi": lambda: stock.FedYogi(**EVERYONE),
    "FedMedian": lambda: stock.FedMedian(**EVERYONE),
    "FedTrimmedAvg": lambda: stock.FedTrimmedAvg(**EVERYONE),
    "FedProx": lambda: stock.FedProx(**EVERYONE, proximal_mu=0.1),
    "Krum": lambda: stock.Krum(**EVERYONE, num_malicious_nodes=1),
    "MultiKrum": lambda: stock.MultiKrum(**EVERYONE, num_malicious_nodes=1, num_nodes_to_select=3),
    "Bulyan": lambda: stock.Bulyan(**EVERYONE, num_malicious_nodes=1),
}


@pytest.fixture
def same_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower draws all clients in a random order; the order of a sum must not differ."""
    monkeypatch.setattr("random.sample", lambda population, k: sorted(population)[:k])


@pytest.mark.usefixtures("same_samples")
@pytest.mark.parametrize("name", STRATEGIES)
def test_failed_attempts_do_not_change_what_a_stock_strategy_learns(
    name: str, tmp_path: Path
) -> None:
    """The second round fails twice; the model is bit for bit that of a run without failures."""
    smooth = FakeGrid({k: [1.0] for k in range(1, CLIENTS + 1)})
    acts: list[float | Fails] = [1.0, NEVER, Fails(1.0), 1.0]
    rough = FakeGrid(dict.fromkeys(range(1, CLIENTS), acts) | {CLIENTS: [1.0]})
    log = tmp_path / "log.csv"
    expected, _ = begin(STRATEGIES[name](), watched(smooth, 8.0, CLIENTS - 1), 3)
    found, result = begin(STRATEGIES[name](), watched(rough, 8.0, CLIENTS - 1, log), 3)
    assert found == expected
    assert [*result.train_metrics_clientapp] == [1, 2, 3]
    assert [*result.evaluate_metrics_clientapp] == [1, 2, 3]
    assert len(log_rows(log)) == 5 * CLIENTS


def test_model_is_the_weighted_mean_of_those_who_reported_in_time() -> None:
    grid = FakeGrid({1: [1.0], 2: [2.0], 3: [9.0]})
    strategy = FedAvg(min_train_nodes=3, min_evaluate_nodes=3, min_available_nodes=3)
    result = strategy.start(watched(grid, 8.0, 2), ArrayRecord([np.zeros(2)]), num_rounds=1)
    # Clients 1 and 2 have 10 and 20 examples.
    mean = (10 * step(1) + 20 * step(2)) / 30
    np.testing.assert_allclose(result.arrays.to_numpy_ndarrays()[0], [mean, mean], rtol=1e-15)
