"""A stock Flower app on real processes: two lines of its server change, and its clients do not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.lab import Lab
from tests.support.flower.database import read_log, wait_for_end
from tests.support.flower.stock_runs import (
    CLIENTS,
    NUMPY_APP,
    TORCH_APP,
    Data,
    change_server,
    load_task,
    read_rows,
    wait_for_rows,
    watched,
)
from tests.support.flower.trial import PATIENT
from tests.support.flower.waiting import unhurried

pytestmark = pytest.mark.federation


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Data]:
    made = Data(tmp_path / "data", load_task(), CLIENTS)
    yield made
    made.release_all()


@pytest.fixture(scope="module")
def deadline() -> float:
    return unhurried(6.0)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stock") / "responses.csv"


@pytest.fixture(scope="module")
def lab(stock_lab: Lab, log: Path, deadline: float) -> Lab:
    arguments = f"deadline={deadline}, quorum=2, log={str(log)!r}"
    change_server(stock_lab, NUMPY_APP, watched(arguments))
    return stock_lab


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
    lab: Lab, log: Path, data: Data, deadline: float, tmp_path: Path
) -> None:
    """Clients 0 and 1 wait for their data until the first attempt has failed; then 1 fails.

    Client 2 reports in each attempt, and a quorum of two is reached in the second.
    """
    data.withhold(0)
    data.withhold(1)
    settings: dict[str, Any] = {
        "data": str(data.folder),
        "output": str(tmp_path),
        "num-server-rounds": 1,
    }
    run = lab.submit(**settings)
    wait_for_rows(lab, run, log, lambda rows: len(rows) == CLIENTS)
    first = read_rows(log)
    assert sorted(row["status"] for row in first) == ["late", "late", "reported"]
    assert {float(row["deadline"]) for row in first} == {round(deadline, 3)}
    data.release(0)
    data.release(1)
    data.remove(1)
    assert wait_for_end(lab, run) == "completed", read_log(lab, run)
    rows = read_rows(log)
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
    for a, b in zip(found, expected_model(load_task(), [[0, 2]]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_round_that_cannot_succeed_ends_the_run_with_a_reason(
    lab: Lab, data: Data, tmp_path: Path
) -> None:
    for partition in range(CLIENTS):
        data.remove(partition)
    settings: dict[str, Any] = {
        "data": str(data.folder),
        "output": str(tmp_path),
        "num-server-rounds": 1,
    }
    run = lab.submit(**settings)
    assert wait_for_end(lab, run) == "failed"
    said = read_log(lab, run)
    assert re.search(r"Round 1 failed \d+ times in a row", said)
    assert "partition-0.csv" in said
    assert not (tmp_path / "metrics.json").exists()


def test_training_and_evaluation_without_faults(lab: Lab, log: Path, tmp_path: Path) -> None:
    before = len(read_rows(log))
    settings: dict[str, Any] = {"output": str(tmp_path), "num-server-rounds": 2}
    run = lab.submit(**settings)
    assert wait_for_end(lab, run) == "completed", read_log(lab, run)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert [*metrics["train"]] == [*metrics["evaluate"]] == ["1", "2"]
    assert len(read_rows(log)) >= before + 2 * CLIENTS  # appended


def test_a_pytorch_app_learns_under_watch(torch_lab: Lab, tmp_path: Path) -> None:
    log = tmp_path / "responses.csv"
    arguments = f"deadline={PATIENT}, quorum=2, log={str(log)!r}"
    change_server(torch_lab, TORCH_APP, watched(arguments))
    settings: dict[str, Any] = {
        "output": str(tmp_path),
        "num-server-rounds": 2,
        "local-epochs": 20,
    }
    run = torch_lab.submit(**settings)
    assert wait_for_end(torch_lab, run) == "completed", read_log(torch_lab, run)
    found = json.loads((tmp_path / "metrics.json").read_text())["evaluate"]
    assert found["2"]["eval_loss"] < found["1"]["eval_loss"] < np.log(10)  # guessing
    assert [row["status"] for row in read_rows(log)] == ["reported"] * 4
