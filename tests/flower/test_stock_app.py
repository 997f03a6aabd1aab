"""A stock Flower app on real processes: two lines of its server change, and its clients do not."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.lab import Lab
from tests.support.flower.stock_runs import (
    NUMPY_APP,
    TORCH_APP,
    Data,
    copy_watched,
    finished,
    read_log,
    wait_for_rows,
)
from tests.support.flower.trial import PATIENT
from tests.support.flower.waiting import unhurried

pytestmark = pytest.mark.federation
CLIENTS = 3


@pytest.fixture(scope="module")
def task() -> Iterator[Any]:
    """The module ``task`` of the stock app."""
    sys.path.insert(0, str(NUMPY_APP))
    yield importlib.import_module("stock.task")
    sys.path.remove(str(NUMPY_APP))


@pytest.fixture(scope="module")
def deadline() -> float:
    return unhurried(10.0)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, deadline: float) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("stock")
    log = folder / "responses.csv"
    app = copy_watched(
        NUMPY_APP, folder / "app", f"deadline={deadline}, quorum=2, log={str(log)!r}, patience=4"
    )
    lab = Lab(app)
    try:
        lab.up(nodes=CLIENTS)
        yield lab
    finally:
        lab.down()


def expected_model(task: Any, partitions: list[list[int]]) -> list[Any]:
    """FedAvg by hand: in each round the mean of some clients' models, weighted by examples."""
    model: list[Any] = task.new_model()
    for reporters in partitions:
        examples = [task.make_examples(k) for k in reporters]
        trained = [task.train(model, *each, epochs=2, lr=0.1)[0] for each in examples]
        sizes = [len(labels) for _, labels in examples]
        model = [
            sum(size * m[part] for size, m in zip(sizes, trained, strict=True)) / sum(sizes)
            for part in range(2)
        ]
    return model


def test_deadline_quorum_and_log_with_unchanged_clients(
    lab: Lab, task: Any, deadline: float, tmp_path: Path
) -> None:
    """Clients 0 and 1 wait for their data until the first attempt has failed; then 1 fails.

    Client 2 reports in each attempt, and a quorum of two is reached in the second.
    """
    log = lab.paths.folder.parent / "responses.csv"
    data = Data(tmp_path / "data", task, CLIENTS)
    data.withhold(0)
    data.withhold(1)
    settings: dict[str, Any] = {
        "data": str(data.folder),
        "output": str(tmp_path),
        "num-server-rounds": 1,
    }
    run = lab.submit(**settings)
    wait_for_rows(lab, run, log, lambda rows: len(rows) == CLIENTS)
    first = read_log(log)
    assert sorted(row["status"] for row in first) == ["late", "late", "reported"]
    assert {float(row["deadline"]) for row in first} == {round(deadline, 3)}
    data.release(0)
    data.release(1)
    data.remove(1)
    assert finished(lab, run) == "finished:completed", lab.run_log(run, 100)
    rows = read_log(log)
    last = [row for row in rows if row["attempt"] == rows[-1]["attempt"]]
    assert len(rows) == CLIENTS * int(rows[-1]["attempt"])
    assert {row["round"] for row in rows} == {"1"}
    assert sorted(row["status"] for row in last)[1:] == ["reported", "reported"]
    other = next(row for row in last if row["status"] != "reported")
    assert other["status"] in ("failed", "late")  # late if this machine is very busy
    if other["status"] == "failed":
        assert "partition-1.csv" in other["error"]  # the client's own words
    # The model is that of one round of FedAvg with the two clients that reported.
    with np.load(tmp_path / "final_model.npz") as saved:
        found = [saved[f"arr_{k}"] for k in range(2)]
    for a, b in zip(found, expected_model(task, [[0, 2]]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_round_that_cannot_succeed_ends_the_run_with_a_reason(
    lab: Lab, task: Any, tmp_path: Path
) -> None:
    data = Data(tmp_path / "data", task, CLIENTS)
    for partition in range(CLIENTS):
        data.remove(partition)
    settings: dict[str, Any] = {
        "data": str(data.folder),
        "output": str(tmp_path),
        "num-server-rounds": 1,
    }
    run = lab.submit(**settings)
    assert finished(lab, run) == "finished:failed"
    said = lab.run_log(run, 200)
    assert "Round 1 failed 3 times in a row" in said
    assert "partition-0.csv" in said
    assert not (tmp_path / "metrics.json").exists()


def test_training_and_evaluation_without_faults(lab: Lab, task: Any, tmp_path: Path) -> None:
    log = lab.paths.folder.parent / "responses.csv"
    before = len(read_log(log))
    settings: dict[str, Any] = {"output": str(tmp_path), "num-server-rounds": 2}
    run = lab.submit(**settings)
    assert finished(lab, run) == "finished:completed", lab.run_log(run, 100)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert [*metrics["train"]] == [*metrics["evaluate"]] == ["1", "2"]
    assert len(read_log(log)) >= before + 2 * CLIENTS  # appended


def test_a_pytorch_app_learns_under_watch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cafe-fl[torch]'")
    log = tmp_path / "responses.csv"
    arguments = f"deadline={PATIENT}, quorum=2, log={str(log)!r}"
    lab = Lab(copy_watched(TORCH_APP, tmp_path / "app", arguments))
    try:
        lab.up(nodes=2, insecure=True)
        settings: dict[str, Any] = {
            "output": str(tmp_path),
            "num-server-rounds": 2,
            "local-epochs": 20,
        }
        run = lab.submit(**settings)
        assert finished(lab, run) == "finished:completed", lab.run_log(run, 100)
    finally:
        lab.down()
    found = json.loads((tmp_path / "metrics.json").read_text())["evaluate"]
    assert found["2"]["eval_loss"] < found["1"]["eval_loss"] < np.log(10)  # guessing
    assert [row["status"] for row in read_log(log)] == ["reported"] * 4
