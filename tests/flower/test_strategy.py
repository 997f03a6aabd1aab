"""CAFe's rounds with stock ClientApps: the model and the books."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import Message
from flwr.serverapp.strategy import (
    FedAvg,
)

import cafe
from cafe.live import Median, ReportLimits
from cafe.live.run_log import read_jobs, read_rounds
from cafe.policies import awu, fedasync, fedavg, fedbuff, mcu
from cafe.randomness import Stream
from cafe.results import load
from tests.support.flower.stock_grid import StockGrid, named_arrays, stock_app
from tests.support.flower.strategy_runs import START, Run, late, read_config, train, values

pytestmark = pytest.mark.usefixtures("identity")

# The model


def test_mcu_is_the_plain_mean_of_the_returned_models(run: Run) -> None:
    found = values(run(mcu(quorum=3, deadline=5.0), 2))
    # Each round adds the mean of 1, 2 and 3; the counter the mean of 2, 4 and 6.
    np.testing.assert_allclose(found["w"], START["w"] + 4.0, rtol=1e-6)
    np.testing.assert_allclose(found["b"], START["b"] + 4.0, rtol=1e-15)
    assert found["batches"] == 7 + 8
    assert {name: a.dtype for name, a in found.items()} == {n: a.dtype for n, a in START.items()}


def test_weights_by_examples_equal_flowers_fedavg(grid: StockGrid, run: Run) -> None:
    found = values(run(fedavg(fraction=1.0, quorum=3, deadline=5.0), 3))
    # Weights 1/6, 2/6, 3/6: the mean of 1, 2, 3 is 14/6.
    np.testing.assert_allclose(found["w"], START["w"] + 3 * 14 / 6, rtol=1e-6)
    stock = FedAvg(fraction_evaluate=0.0).start(grid, named_arrays(START), 3)
    for name, array in values(stock).items():
        rounding = 3 * 0.5 if name == "batches" else 0.0  # of the counter, once per round
        np.testing.assert_allclose(found[name], array, rtol=1e-6, atol=rounding)


def test_only_reports_before_the_deadline_are_in_the_model(grid: StockGrid, run: Run) -> None:
    grid.delay = late(3)
    found = values(run(mcu(quorum=2, deadline=5.0)))
    np.testing.assert_allclose(found["b"], START["b"] + 1.5)
    assert found["batches"] == 7 + 3


def test_late_report_that_is_kept_counts_from_the_version_it_was_sent(
    grid: StockGrid, run: Run
) -> None:
    """The update is the difference from the model that was sent, not from the present model."""
    grid.delay = lambda node, message: 7.0 if node == 3 else 1.0
    found = values(run(mcu(quorum=1, deadline=5.0, late="keep"), 2))
    # Round 0 merges nodes 1 and 2 (mean 1.5), round 1 all three: node 3 began from version 0.
    np.testing.assert_allclose(found["b"], START["b"] + 1.5 + 2.0)


def test_fedbuff_with_stock_clients(grid: StockGrid, run: Run) -> None:
    """Node 1 reports at 1 s and 2 s, node 2 at 1.7 s, and node 3 at 2.5 s."""
    grid.delay = lambda node, message: {1: 1.0, 2: 1.7, 3: 2.5}[node]
    found = values(run(fedbuff(concurrency=3, goal=2), 2))
    # Nodes 1 and 2, then 1 and 3 with reports that are one update old.
    np.testing.assert_allclose(found["b"], START["b"] + (1 + 2) / 2 + (1 + 3) / 2 / np.sqrt(2))
    assert len(grid.configs()) == 3 + 1 + 1 + 1  # who reports gets a new job, but for the last


def test_fedasync_with_stock_clients(grid: StockGrid, run: Run) -> None:
    """All three nodes began from version 0; each model is mixed in with a weight of a half."""
    grid.delay = lambda node, message: {1: 1.0, 2: 1.5, 3: 1.8}[node]
    found = values(run(fedasync(concurrency=3, mixing=0.5, staleness="constant", prox=0), 3))
    np.testing.assert_allclose(found["b"], START["b"] + 1 / 8 + 2 / 4 + 3 / 2)


def test_a_failed_round_leaves_the_model_unchanged_and_is_repeated(
    grid: StockGrid, run: Run, tmp_path: Path
) -> None:
    rounds: list[int] = []

    def delay(node: int, message: Message) -> float:
        rounds.append(read_config(message)["server-round"])
        return 60.0 if len(rounds) <= 3 else 1.0  # all are late in the first round

    grid.delay = delay
    found = values(run(mcu(quorum=2, deadline=5.0)))
    assert [r.succeeded for r in read_rounds(tmp_path / "run")] == [False, True]
    assert rounds == [1] * 6  # both rounds are the first of the model
    sent = [message.content.array_records["arrays"] for message in grid.sent[2:4]]
    first, second = ({n: record[n].numpy() for n in START} for record in sent)
    for name, array in START.items():
        assert first[name].tobytes() == second[name].tobytes() == array.tobytes()
        assert second[name].dtype == array.dtype
    np.testing.assert_allclose(found["b"], START["b"] + 2.0)


def test_client_may_return_another_order_and_wider_numbers(grid: StockGrid, run: Run) -> None:
    def train_in_float64(model: dict[str, Any], config: Any, context: Any) -> Any:
        moved = {n: model[n].astype(np.float64) + 0.125 for n in reversed([*model])}
        return moved, {"num-examples": 1.0}

    grid.app = stock_app(train_in_float64)
    found = values(run(mcu(quorum=3, deadline=5.0)))
    np.testing.assert_array_equal(found["w"], START["w"] + np.float32(0.125))
    assert found["w"].dtype == np.float32
    assert found["batches"] == 7


def test_robust_aggregation_is_an_option(run: Run, grid: StockGrid) -> None:
    grid.nodes = 5
    grid.app = stock_app(
        lambda model, config, context: (
            {n: a + 100 * (context.node_id == 5) for n, a in model.items()},
            {"num-examples": 1},
        )
    )
    found = values(run(mcu(quorum=5, deadline=5.0), combine=Median()))
    np.testing.assert_array_equal(found["b"], START["b"])


# The books


def test_books_name_the_fate_of_each_job(grid: StockGrid, run: Run, tmp_path: Path) -> None:
    def scripted(model: dict[str, Any], config: Any, context: Any) -> Any:
        k = context.node_id
        if k == 1:
            raise ValueError("out of memory")
        moved, metrics = train(model, config, context)
        if k == 2:
            moved["w"] = np.full((2, 2), np.nan, np.float32)
        if k == 3:
            moved["w"] = moved["w"][:1]
        if k == 4:
            del metrics["num-examples"]
        if k == 5:
            moved["w"] = moved["w"] + np.float32(1e6)
        return moved, metrics

    grid.nodes, grid.app = 7, stock_app(scripted)
    grid.delay = late(6)
    run(mcu(quorum=1, deadline=5.0), report_limits=ReportLimits(norm=1000.0))
    jobs = {job.name: job for job in read_jobs(tmp_path / "run")}
    assert [jobs[f"{k}"].fate for k in range(1, 8)] == [
        "crashed", "refused", "refused", "refused", "refused", "late", "fresh",
    ]  # fmt: skip
    assert "out of memory" in jobs["1"].reason
    assert "NaN or infinity" in jobs["2"].reason
    assert "w must have the shape (2, 2), got (1, 2)" in jobs["3"].reason
    assert "no 'num-examples'" in jobs["4"].reason
    assert "norm" in jobs["5"].reason
    assert jobs["7"].took is None
    assert jobs["7"].coefficient == 1.0
    rows = (tmp_path / "run" / "responses.csv").read_text().splitlines()
    assert rows == ["client,seconds,deadline", "6,,5.000000", "7,1.000000,5.000000"]


@pytest.mark.slow
def test_books_equal_those_of_the_simulator(grid: StockGrid, run: Run, tmp_path: Path) -> None:
    """With the response times that the simulator draws: the same rounds, fates, ages and waste."""
    federation, seed, policy = (
        cafe.Federation(6, cafe.Exponential(0.5)),
        4,
        awu(quorum=4, deadline=2.0),
    )
    invitations: list[Any] = []

    def delay(node: int, message: Message) -> float:
        if node == 1:
            rng = Stream(seed, "latency").at(len(invitations))
            invitations.append(federation.draw(rng, np.arange(6)))
        return float(invitations[-1][node - 1])

    grid.nodes, grid.delay = 6, delay
    result = run(policy, 12, seed=seed)
    simulated = cafe.simulate(federation, policy, updates=12, seed=seed)
    live = load(tmp_path / "run").history
    assert (live.rounds, live.updates) == (simulated.rounds, 12)
    assert live.fates == simulated.fates
    assert live.rounds > 12  # some rounds fail
    for name in ("succeeded", "reports", "used"):
        np.testing.assert_array_equal(live.by_round[name], simulated.by_round[name])
    for name in ("closed", "waste"):
        np.testing.assert_allclose(live.by_round[name], simulated.by_round[name], atol=1e-6)
    np.testing.assert_allclose(live.mean_age, simulated.mean_age, rtol=1e-6)
    assert sorted(result.train_metrics_clientapp) == [*range(1, 13)]
