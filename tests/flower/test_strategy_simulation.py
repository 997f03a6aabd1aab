"""The strategy under Flower's simulation runtime, where ray runs the clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")
pytest.importorskip("ray", reason="Flower's simulation runtime needs ray, which is not installed")

from cafe.live.run_log import read_jobs, read_rounds
from tests.support.flower.waiting import unhurried

pytestmark = pytest.mark.federation

# Node k adds k + 1 to the model. Node 3 hangs in its first job, so that the first round fails: the
# quorum is 4.
APP = """
import json, sys, time
from pathlib import Path
import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
import cafe

folder, deadline = Path(sys.argv[1]), float(sys.argv[2])
client, server = ClientApp(), ServerApp()

@client.train()
def train(message, context):
    k, once = context.node_config["partition-id"], folder / "hung"
    if k == 3 and not once.exists():
        once.touch()
        time.sleep(deadline + 1)
    arrays = [a + k + 1 for a in message.content["arrays"].to_numpy_ndarrays()]
    metrics = MetricRecord({"num-examples": 5, "lr": message.content["config"]["lr"] * k})
    content = RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics})
    return Message(content, reply_to=message)

@client.evaluate()
def evaluate(message, context):
    loss = float(message.content["arrays"].to_numpy_ndarrays()[0][0])
    metrics = MetricRecord({"num-examples": 5, "eval_loss": loss})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)

@server.main()
def main(grid, context):
    policy = cafe.policies.mcu(quorum=4, deadline=deadline, close_when_all=True)
    strategy = cafe.flower.Strategy(policy, folder=folder / "run")
    result = strategy.start(
        grid, ArrayRecord([np.zeros(2)]), 2, train_config=ConfigRecord({"lr": 0.5})
    )
    found = {
        "model": result.arrays.to_numpy_ndarrays()[0].tolist(),
        "train": {n: dict(m) for n, m in result.train_metrics_clientapp.items()},
        "evaluate": {n: dict(m) for n, m in result.evaluate_metrics_clientapp.items()},
    }
    (folder / "result.json").write_text(json.dumps(found))

if __name__ == "__main__":
    resources = {"client_resources": {"num_cpus": 0.5, "num_gpus": 0.0}}
    run_simulation(server, client, num_supernodes=4, backend_config=resources)
"""


def test_rounds_with_a_missed_deadline_in_the_simulation_runtime(tmp_path: Path) -> None:
    script = tmp_path / "simulated.py"
    script.write_text(APP)
    command = [sys.executable, str(script), str(tmp_path), f"{unhurried(10.0)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "result.json").read_text())
    # Each success adds the mean of 1, 2, 3 and 4.
    assert found["model"] == [5.0, 5.0]
    assert found["train"] == {"1": {"lr": 0.75}, "2": {"lr": 0.75}}
    assert found["evaluate"] == {"1": {"eval_loss": 2.5}, "2": {"eval_loss": 5.0}}
    rounds = read_rounds(tmp_path / "run")
    assert not rounds[0].succeeded
    assert [r.used for r in rounds if r.succeeded] == [4, 4]
    assert "late" in [job.fate for job in read_jobs(tmp_path / "run") if job.round == 0]
