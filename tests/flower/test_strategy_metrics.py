"""CAFe's rounds with stock ClientApps: configuration, metrics, and runs that are resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict

from cafe.errors import FileError, InputError
from cafe.live.live_run import POLL
from cafe.policies import fedavg, mcu
from cafe.results import events
from tests.support.flower.stock_grid import StockGrid, stock_app
from tests.support.flower.strategy_runs import (
    START,
    Run,
    late,
    read_config,
    train,
    values,
)

pytestmark = pytest.mark.usefixtures("identity")

# Configuration and metrics


def test_configuration_of_each_round_arrives(grid: StockGrid, run: Run) -> None:
    given = ConfigRecord({"lr": 0.4, "server-round": 99})

    def halve(server_round: int, config: ConfigRecord) -> ConfigRecord:
        config["lr"] = (
            float(str(config["lr"])) / 2**server_round
        )  # a copy of train_config each time
        return config

    starting = {"train_config": given, "evaluate_config": ConfigRecord({"batch": 8})}
    run(mcu(quorum=3, deadline=5.0), 2, starting, configure=halve, fraction_evaluate=1.0)
    expected = [{"lr": 0.4 / 2**n, "server-round": n, "deadline": 5.0} for n in (1, 2)]
    assert grid.configs() == [expected[0]] * 3 + [expected[1]] * 3
    evaluations = grid.configs(MessageType.EVALUATE)
    assert evaluations == [{"batch": 8, "server-round": n} for n in (1, 1, 1, 2, 2, 2)]
    assert dict(given) == {"lr": 0.4, "server-round": 99}
    with pytest.raises(InputError, match="configure must return a ConfigRecord of Flower"):
        run(mcu(quorum=3, deadline=5.0), overwrite=True, configure=lambda number, config: None)


def test_records_have_the_keys_that_the_app_uses(grid: StockGrid, run: Run) -> None:
    def renamed(model: dict[str, Any], config: Any, context: Any) -> Any:
        return model, {"samples": context.node_id, "loss": float(context.node_id)}

    grid.app = stock_app(renamed, arrays="model", config="settings")
    keys = {
        "weighted_by_key": "samples",
        "arrayrecord_key": "model",
        "configrecord_key": "settings",
    }
    result = run(fedavg(fraction=1.0, quorum=3, deadline=5.0), **keys)
    assert dict(result.train_metrics_clientapp[1]) == {"loss": pytest.approx(14 / 6)}


def test_metrics_are_means_weighted_by_examples(run: Run, tmp_path: Path) -> None:
    result = run(mcu(quorum=3, deadline=5.0), 2, fraction_evaluate=1.0)
    expected = {"train_loss": pytest.approx(14 / 6), "by_class": pytest.approx([14 / 6, 28 / 6])}
    assert {n: dict(m) for n, m in result.train_metrics_clientapp.items()} == {
        1: expected,
        2: expected,
    }
    # b[0] is 0.25 + 2 after round 1; the evaluation weights are 1/6, 2/6, 3/6.
    first = result.evaluate_metrics_clientapp[1]
    assert first["eval_loss"] == pytest.approx(2.25 + 14 / 6)
    assert first["eval_acc"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 6)
    assert result.evaluate_metrics_serverapp == {}
    scores = events.read(tmp_path / "run" / events.NAME).scores
    assert [score.loss for _, score in scores] == pytest.approx([2.25 + 14 / 6, 4.25 + 14 / 6])


def test_metrics_of_reports_that_are_not_in_the_model_do_not_count(
    grid: StockGrid, run: Run
) -> None:
    grid.delay = late(3)
    result = run(mcu(quorum=2, deadline=5.0), 2)
    found = [dict(metrics)["train_loss"] for metrics in result.train_metrics_clientapp.values()]
    assert found == pytest.approx([5 / 3, 5 / 3])


def test_own_functions_aggregate_metrics(run: Run) -> None:
    seen: list[Any] = []

    def largest(replies: list[RecordDict], key: str) -> MetricRecord:
        seen.append((len(replies), key, {name for reply in replies for name in reply}))
        return MetricRecord({"worst": max(float(str(r["metrics"]["train_loss"])) for r in replies)})

    def failing(replies: list[RecordDict], key: str) -> MetricRecord:
        raise KeyError("no such metric")

    result = run(
        mcu(quorum=3, deadline=5.0),
        train_metrics_aggr_fn=largest,
        evaluate_metrics_aggr_fn=failing,
        fraction_evaluate=1.0,
    )
    assert dict(result.train_metrics_clientapp[1]) == {"worst": 3.0}
    assert seen == [(3, "num-examples", {"metrics"})]
    assert result.evaluate_metrics_clientapp == {}


def test_server_evaluates_before_the_first_round_and_after_each_success(
    grid: StockGrid, run: Run, tmp_path: Path
) -> None:
    asked: list[tuple[int, float]] = []

    def on_server(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
        first = float(arrays["b"].numpy()[0])
        asked.append((server_round, first))
        return MetricRecord({"loss": first, "accuracy": 0.5}) if server_round != 1 else None

    result = run(mcu(quorum=3, deadline=5.0), 2, {"evaluate_fn": on_server})
    assert asked == [(0, 0.25), (1, 2.25), (2, 4.25)]
    assert {n: m["loss"] for n, m in result.evaluate_metrics_serverapp.items()} == {
        0: 0.25,
        2: 4.25,
    }
    assert events.read(tmp_path / "run" / events.NAME).scores == [(2, (4.25, 0.5))]


def test_policy_that_needs_scores_sees_those_of_the_clients_or_of_the_server(run: Run) -> None:
    """It sees a score before the first round too; evaluate_fn is called once per version."""
    seen: list[Any] = []
    asked: list[int] = []
    base = mcu(quorum=3, deadline=5.0)

    def invite(ledger: Any, rng: Any) -> Any:
        seen.append(ledger.score)
        return base.invite(ledger, rng)

    def on_server(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        asked.append(server_round)
        return MetricRecord({"loss": 10.0 - server_round})

    policy = replace(base, invite=invite, needs=frozenset({"scores"}))
    run(policy, 2, fraction_evaluate=1.0)
    # b[0] is 0.25 and then 2.25; client k adds k, with the weight k / 6.
    assert [(score.loss, score.version) for score in seen] == [
        (pytest.approx(0.25 + 14 / 6), 0),
        (pytest.approx(2.25 + 14 / 6), 1),
    ]
    seen.clear()
    result = run(policy, 2, {"evaluate_fn": on_server}, overwrite=True)
    assert [(score.loss, score.version) for score in seen] == [(10.0, 0), (9.0, 1)]
    assert asked == [0, 1, 2]
    assert sorted(result.evaluate_metrics_serverapp) == [0, 1, 2]


def test_clients_that_do_not_evaluate_do_not_stop_the_run(
    grid: StockGrid, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    grid.app = stock_app(train)  # without an evaluation function
    with caplog.at_level("INFO", logger="flwr"):
        result = run(mcu(quorum=3, deadline=5.0), fraction_evaluate=1.0)
    assert result.evaluate_metrics_clientapp == {}
    assert "Version 1 was not evaluated: none of 3 clients evaluated it" in caplog.text


def test_server_evaluates_even_if_clients_cannot(
    grid: StockGrid, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    grid.app = stock_app(train)
    starting = {"evaluate_fn": lambda number, arrays: MetricRecord({"loss": 1.0 + number})}
    with caplog.at_level("INFO", logger="flwr"):
        result = run(mcu(quorum=3, deadline=5.0), 1, starting, fraction_evaluate=1.0)
    assert [*result.evaluate_metrics_serverapp] == [0, 1]
    assert "Version 1: none of 3 clients evaluated it" in caplog.text
    assert "Evaluated version 1: loss 2" in caplog.text


def test_error_in_the_evaluation_function_shows_before_any_client_works(
    grid: StockGrid, run: Run
) -> None:
    def broken(number: int, arrays: ArrayRecord) -> MetricRecord:
        raise KeyError("test set")

    with pytest.raises(KeyError, match="test set"):
        run(mcu(quorum=3, deadline=5.0), 1, {"evaluate_fn": broken})
    assert not grid.sent


def test_a_share_of_the_clients_evaluates_within_the_deadline(grid: StockGrid, run: Run) -> None:
    grid.nodes = 10

    def delay(node: int, message: Message) -> float | None:
        return 1.0 if message.metadata.message_type == MessageType.TRAIN else None

    grid.delay = delay
    began = grid.now
    result = run(mcu(quorum=10, deadline=5.0), fraction_evaluate=0.3)
    assert len(grid.configs(MessageType.EVALUATE)) == 3
    assert grid.now - began == pytest.approx(10.0, abs=POLL)  # a round and an evaluation
    assert result.evaluate_metrics_clientapp == {}


# Files


class Killed(BaseException):
    """Simulates that the process was killed."""


def test_killed_run_is_resumed_with_all_its_metrics(grid: StockGrid, run: Run) -> None:
    policy, evaluations = mcu(quorum=3, deadline=5.0), []

    def on_server(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        evaluations.append(server_round)
        return MetricRecord({"loss": float(arrays["b"].numpy()[0])})

    def die(node: int, message: Message) -> float:
        if read_config(message)["server-round"] == 3:
            raise Killed
        return 1.0

    starting = {"evaluate_fn": on_server}
    grid.delay = die
    with pytest.raises(Killed):
        run(policy, 4, starting, fraction_evaluate=1.0)
    grid.delay = lambda node, message: 1.0
    before = len(grid.sent)
    result = run(policy, 4, starting, fraction_evaluate=1.0)
    assert {c["server-round"] for c in grid.configs()[-6:]} == {3, 4}
    assert len(grid.sent) == before + 2 * 6
    np.testing.assert_allclose(values(result)["b"], START["b"] + 8.0)
    assert values(result)["batches"] == 7 + 16
    assert evaluations == [0, 1, 2, 3, 4]
    losses = {n: m["loss"] for n, m in result.evaluate_metrics_serverapp.items()}
    assert losses == {n: 0.25 + 2 * n for n in range(5)}
    assert [*result.train_metrics_clientapp] == [*result.evaluate_metrics_clientapp] == [1, 2, 3, 4]


def test_finished_run_returns_its_result_without_asking_clients(grid: StockGrid, run: Run) -> None:
    policy = mcu(quorum=3, deadline=5.0)
    first = run(policy, 2)
    sent = len(grid.sent)
    again = run(policy, 2)
    assert len(grid.sent) == sent
    assert values(again)["w"].tobytes() == values(first)["w"].tobytes()
    assert again.train_metrics_clientapp == first.train_metrics_clientapp
    with pytest.raises(
        InputError, match=r"num_rounds is 3.*finished after 2 rounds.*overwrite=True"
    ):
        run(policy, 3)
    with pytest.raises(FileError, match="started with other settings"):
        run(mcu(quorum=2, deadline=5.0), 2)
    assert len(run(policy, 3, overwrite=True).train_metrics_clientapp) == 3
