"""A stock Flower app on real SuperNodes, whose server has one changed line."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.lab import Lab
from cafe.live.job_records import JobRecord
from cafe.live.run_log import read_jobs, read_rounds
from tests.support.flower.database import read_log, wait_for_end
from tests.support.flower.stock_runs import CLIENTS, NUMPY_APP, Data, change_server, load_task
from tests.support.flower.trial import gone, id_of_node, read_live
from tests.support.flower.waiting import unhurried, wait_until

pytestmark = pytest.mark.federation

IMPORT = "from flwr.serverapp.strategy import FedAvg\n"
LINE = 'FedAvg(fraction_train=config["fraction-train"])'
ROUNDS, EPOCHS, LR = 2, 2, 0.1


@pytest.fixture
def lab(stock_lab: Lab, tmp_path: Path) -> Lab:
    """The stock app with another strategy; its server's folder is ``run``."""
    policy = f"cafe.policies.mcu(quorum=2, deadline={unhurried(6.0)}, close_when_all=True)"
    changed = f"cafe.flower.Strategy({policy}, folder={str(tmp_path / 'run')!r})"
    change_server(stock_lab, NUMPY_APP, {IMPORT: "import cafe\n", LINE: changed})
    return stock_lab


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Data]:
    made = Data(tmp_path / "data", load_task(), CLIENTS)
    yield made
    made.release_all()


def test_deadline_quorum_and_restart_with_a_stock_app(lab: Lab, data: Data, tmp_path: Path) -> None:
    """One client is late until the restart, and then fails; another one is late in the first round.

    So the first round fails at its deadline, the second succeeds at its deadline, and later ones
    close when all clients have answered.
    """
    task, out = load_task(), tmp_path / "run"
    settings: dict[str, Any] = {
        "num-server-rounds": ROUNDS,
        "local-epochs": EPOCHS,
        "learning-rate": LR,
        "data": str(data.folder),
        "output": str(tmp_path),
    }
    data.withhold(1)
    data.withhold(2)
    run = lab.submit(**settings)

    def wait(name: str, at_least: int) -> dict[str, Any]:
        def check() -> dict[str, Any] | None:
            now = read_live(out)
            assert now["state"] != "stopped", now["why"]
            return now if now[name] >= at_least else None

        found = wait_until(check, lambda: f"{read_live(out)}\n{read_log(lab, run)}")
        assert found is not None
        return found

    wait("round", 1)
    data.release(1)
    server = wait("version", 1)["pid"]
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: gone(server))
    data.release(2, keep=False)
    lab.stop_run(run)  # otherwise the SuperLink counts it as running for a minute
    run = lab.submit(**settings)
    assert wait_for_end(lab, run) == "completed", read_log(lab, run)

    rounds, jobs = read_rounds(out), read_jobs(out)
    assert not rounds[0].succeeded
    assert rounds[0].reports < 2
    assert sum(outcome.succeeded for outcome in rounds) == ROUNDS
    partition = {id_of_node(lab, f"node-{k + 1}"): k for k in range(CLIENTS)}
    assert {job.fate for job in jobs if partition[job.name] == 2} <= {"late", "crashed"}
    merged = merged_by_version(jobs, partition)
    assert set(merged) == {*range(1, ROUNDS + 1)}
    assert all(2 not in clients for clients in merged.values())

    # The same rounds, trained here.
    model, losses = task.new_model(), {}
    for version, clients in sorted(merged.items()):
        found = [task.train(model, *task.make_examples(k), EPOCHS, LR) for k in clients]
        model = [np.mean(parts, axis=0) for parts in zip(*(m for m, _ in found), strict=True)]
        sizes = [len(task.make_examples(k)[1]) for k in clients]
        losses[f"{version}"] = np.average([loss for _, loss in found], weights=sizes)
    with np.load(tmp_path / "final_model.npz") as final:
        for mine, name in zip(model, final.files, strict=True):
            np.testing.assert_allclose(final[name], mine, rtol=1e-9, atol=1e-12)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    seen = {version: found["train_loss"] for version, found in metrics["train"].items()}
    assert seen == pytest.approx(losses)
    assert {"eval_loss", "eval_acc"} == set(metrics["evaluate"][f"{ROUNDS}"])


def merged_by_version(jobs: list[JobRecord], partition: dict[str, int]) -> dict[int, list[int]]:
    """The partitions of the clients in each update."""
    found: dict[int, list[int]] = {}
    for job in jobs:
        if job.merged is not None:
            found.setdefault(job.merged, []).append(partition[job.name])
    return found
