"""What CAFe's strategy for stock ClientApps refuses, and how its runs fail."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
)

import cafe
from cafe.errors import InfeasibleError, InputError
from cafe.flower import Strategy
from cafe.policies import agu, fedavg, mcu
from tests.support.flower.stock_grid import StockGrid, named_arrays, stock_app
from tests.support.flower.strategy_runs import START, Run

pytestmark = pytest.mark.usefixtures("identity")

# What is refused


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (agu(quorum=2, deadline=5.0), r"agu needs local models .*unchanged ClientApp.*mcu"),
        (mcu(quorum=2, deadline=5.0, steps=4), "asks its clients for steps=4"),
        (fedavg(epochs=3, deadline=5.0), "asks its clients for epochs=3"),
    ],
)
def test_policies_that_need_cafes_client_are_refused(policy: cafe.Policy, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Strategy(policy)


def test_policy_of_a_controller_is_refused_in_the_run(run: Run, grid: StockGrid) -> None:
    with pytest.raises(InputError, match="needs local models"):
        run(lambda ledger, seen: agu(quorum=2, deadline=5.0))
    assert not grid.sent


def test_policy_that_needs_scores_is_refused_if_nobody_evaluates(run: Run, grid: StockGrid) -> None:
    policy = replace(mcu(quorum=2, deadline=5.0), needs=frozenset({"scores"}))
    with pytest.raises(InputError, match=r"mcu needs scores, but .*Strategy fraction_evaluate"):
        run(policy, fraction_evaluate=0.0)
    assert not grid.sent


def test_a_round_without_end_is_refused(run: Run) -> None:
    with pytest.raises(InputError, match="Give the policy a deadline"):
        run(fedavg(fraction=1.0))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rounds": 3}, "Pass num_rounds to start"),
        ({"model": {}}, "Pass initial_arrays to start"),
        ({"evaluate": "clients"}, "fraction_evaluate"),
        ({"fraction_train": 0.5}, "The policy chooses the clients"),
        ({"min_available_nodes": 4}, r"Pass clients="),
        ({"fraction_evalute": 0.5}, "Did you mean 'fraction_evaluate'"),
        ({"patiense": 5}, "Did you mean 'patience'"),
        ({"fraction_evaluate": 2}, "from 0 to 1"),
        ({"configure": 3}, "configure must be a function"),
        ({"patience": 0}, "patience"),
    ],
)
def test_wrong_arguments_are_sentences(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Strategy(mcu(quorum=1, deadline=1.0), **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"initial_arrays": [np.zeros(2)]}, "must be an ArrayRecord of Flower.* Got list"),
        ({"initial_arrays": ArrayRecord()}, "at least one array"),
        ({"initial_arrays": ArrayRecord([np.zeros(2, int)])}, "none of them floating-point"),
        ({"num_rounds": 0}, "num_rounds"),
        ({"timeout": 0}, "timeout"),
        ({"train_config": {"lr": 1}}, "train_config must be a ConfigRecord"),
        ({"evaluate_fn": 3}, "evaluate_fn must be a function"),
    ],
)
def test_wrong_arguments_of_start_are_sentences(
    grid: StockGrid, tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    strategy = Strategy(mcu(quorum=1, deadline=1.0), folder=tmp_path / "run")
    with pytest.raises(InputError, match=words):
        strategy.start(**{"grid": grid, "initial_arrays": named_arrays(START), **given})
    assert not (tmp_path / "run").exists()


def test_flowers_loop_does_not_run_it(grid: StockGrid, tmp_path: Path) -> None:
    strategy = Strategy(mcu(quorum=1, deadline=1.0), folder=tmp_path)
    private = DifferentialPrivacyServerSideFixedClipping(strategy, 0.1, 1.0, 3)
    with pytest.raises(InputError, match=r"configure_train was called.*cafe\.flower\.watch"):
        private.start(grid, named_arrays(START), 1)
    empty: Any = None
    for call in (
        lambda: strategy.aggregate_train(1, []),
        lambda: strategy.configure_evaluate(1, empty, empty, empty),
        lambda: strategy.aggregate_evaluate(1, []),
    ):
        with pytest.raises(InputError, match="runs CAFe's own loop"):
            call()


def test_an_override_that_would_be_ignored_is_refused() -> None:
    class Decaying(Strategy):
        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
            config["lr"] *= 0.5
            return super().configure_train(server_round, arrays, config, grid)

    with pytest.raises(InputError, match=r"Decaying overrides configure_train.*configure="):
        Decaying(mcu(quorum=1, deadline=1.0))


def test_a_run_whose_reports_all_fail_ends_with_a_reason(grid: StockGrid, run: Run) -> None:
    def failing(model: Any, config: Any, context: Any) -> Any:
        raise RuntimeError("CUDA is missing")

    grid.app = stock_app(failing)
    with pytest.raises(InfeasibleError, match=r"3 rounds in a row have failed.*CUDA is missing"):
        run(mcu(quorum=1, deadline=5.0), patience=3)


def test_too_few_clients_end_the_run_with_a_reason(run: Run) -> None:
    with pytest.raises(InfeasibleError, match="3 of 9 required clients are present"):
        run(mcu(quorum=1, deadline=5.0), clients=9, wait=2.0)


def test_not_a_number_in_metrics_survives_the_file(grid: StockGrid, run: Run) -> None:
    def unknown(model: Any, config: Any, context: Any) -> Any:
        return model, {"num-examples": 1, "loss": math.nan, "list": [1.0, math.inf]}

    grid.app = stock_app(unknown)
    found = run(mcu(quorum=3, deadline=5.0)).train_metrics_clientapp[1]
    assert math.isnan(float(str(found["loss"])))
    assert found["list"] == [1.0, pytest.approx(math.nan, nan_ok=True)]
