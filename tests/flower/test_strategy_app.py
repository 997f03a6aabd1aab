"""A stock Flower app on real SuperNodes, whose server has one changed line."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
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
from tests.support.flower.trial import gone, id_of_node, read_live, run_status
from tests.support.flower.waiting import unhurried, wait_until

pytestmark = pytest.mark.federation

APP = Path(__file__).parent.parent / "support" / "flower" / "stock_numpy_app"
IMPORT = "from flwr.serverapp.strategy import FedAvg\n"
LINE = 'FedAvg(fraction_train=config["fraction-train"])'
NODES, ROUNDS, EPOCHS, LR = 3, 2, 2, 0.1


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Three nodes with the stock app; its server's folder is ``run``."""
    app = tmp_path / "app"
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
    server = app / "stock" / "server_app.py"
    text = server.read_text()
    assert text.count(IMPORT) == text.count(LINE) == 1
    deadline = unhurried(9.0)
    policy = f"cafe.policies.mcu(quorum=2, deadline={deadline}, close_when_all=True)"
    changed = f"cafe.flower.Strategy({policy}, folder={str(tmp_path / 'run')!r})"
    server.write_text(text.replace(IMPORT, "import cafe\n").replace(LINE, changed))
    made = Lab(app)
    try:
        made.up(nodes=NODES)
        yield made
    finally:
        made.down()


class Files:
    """The files with the clients' examples. A client waits for a file that is withheld."""

    def __init__(self, folder: Path, task: Any) -> None:
        self.folder, self.task = folder, task
        folder.mkdir()
        for partition in range(NODES):
            self.path(partition).write_text(self.text(partition))

    def path(self, partition: int) -> Path:
        return self.folder / f"partition-{partition}.csv"

    def text(self, partition: int) -> str:
        inputs, labels = self.task.make_examples(partition)
        rows = np.column_stack([inputs, labels]).tolist()
        return "".join(",".join(map(repr, row)) + "\n" for row in rows)

    def withhold(self, partition: int) -> None:
        """Replace a file by a pipe: a client that reads it waits for a writer."""
        self.path(partition).unlink()
        os.mkfifo(self.path(partition))

    def release(self, partition: int) -> None:
        """Write the file, and into the pipe if a client waits for it."""
        pipe = self.folder / "pipe"
        self.path(partition).rename(pipe)
        self.path(partition).write_text(self.text(partition))
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no client waits
            return
        with os.fdopen(writer, "w") as file:
            file.write(self.text(partition))


def load_task() -> Any:
    spec = importlib.util.spec_from_file_location("stock_task", APP / "stock" / "task.py")
    assert spec is not None
    assert spec.loader is not None
    task = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(task)
    return task


def test_deadline_quorum_and_restart_with_a_stock_app(lab: Lab, tmp_path: Path) -> None:
    """One client is always late; another one in the first round, which fails, and is repeated."""
    task, out = load_task(), tmp_path / "run"
    data = Files(tmp_path / "data", task)
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

        found = wait_until(check, lambda: f"{read_live(out)}\n{lab.run_log(run, 100)}")
        assert found is not None
        return found

    wait("round", 1)
    data.release(1)
    server = wait("version", 1)["pid"]
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: gone(server))
    run = lab.submit(**settings)
    wait_until(
        lambda: run_status(lab, run).startswith("finished"), lambda: lab.run_log(run, 100), 2.0
    )
    assert run_status(lab, run) == "finished:completed", lab.run_log(run, 100)

    rounds, jobs = read_rounds(out), read_jobs(out)
    assert not rounds[0].succeeded
    assert rounds[0].reports < 2
    assert sum(outcome.succeeded for outcome in rounds) == ROUNDS
    partition = {id_of_node(lab, f"node-{k + 1}"): k for k in range(NODES)}
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
