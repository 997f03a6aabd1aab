"""CAFe's rounds with stock ClientApps: the model, the books, the metrics, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
    Result,
)

import cafe
from cafe.errors import FileError, InfeasibleError, InputError
from cafe.flower import Strategy
from cafe.live import Median, ReportLimits
from cafe.live.live_run import POLL
from cafe.live.run_log import read_jobs, read_rounds
from cafe.policies import agu, awu, fedavg, mcu
from cafe.randomness import Stream
from cafe.results import events, load
from tests.support.flower.stock_grid import Delay, StockGrid, named_arrays, stock_app

pytestmark = pytest.mark.usefixtures("identity")

# The model of all tests: learned arrays of two types, and a counter.
START: dict[str, Any] = {
    "w": np.array([[1.0, -2.0], [0.5, 4.0]], np.float32),
    "b": np.array([0.25, 3.0]),
    "batches": np.array(7),
}


def train(model: dict[str, Any], config: Any, context: Any) -> Any:
    """Node k adds k to all numbers, 2 k to the counter, and has 10 k examples."""
    k = context.node_id
    moved = {name: array + np.asarray(k, array.dtype) for name, array in model.items()}
    moved["batches"] = model["batches"] + 2 * k
    return moved, {"num-examples": 10 * k, "train_loss": float(k), "by_class": [1.0 * k, 2.0 * k]}


def evaluate(model: dict[str, Any], config: Any, context: Any) -> dict[str, Any]:
    k = context.node_id
    return {"num-examples": k, "eval_loss": float(model["b"][0]) + k, "eval_acc": 1 / (k + 1)}


@pytest.fixture
def grid(monkeypatch: pytest.MonkeyPatch) -> StockGrid:
    return StockGrid(stock_app(train, evaluate), 3).install(monkeypatch)


Run = Callable[..., Result]
USUAL = {"fraction_evaluate": 0, "patience": 5}


@pytest.fixture
def run(grid: StockGrid, tmp_path: Path) -> Run:
    """Starts a strategy on the grid."""

    def start(policy: Any, rounds: int = 1, /, starting: Any = None, **options: Any) -> Result:
        strategy = Strategy(policy, folder=tmp_path / "run", **(USUAL | options))
        return strategy.start(grid, named_arrays(START), rounds, **(starting or {}))

    return start


def values(result: Result) -> dict[str, Any]:
    return {name: array.numpy() for name, array in result.arrays.items()}


def read_config(message: Message) -> dict[str, Any]:
    return dict(message.content.config_records["config"])


def late(node: int) -> Delay:
    """One node is always late."""
    return lambda other, message: 60.0 if other == node else 1.0


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
