"""A watched strategy on Flower's simulation runtime; run as a program, in a process of its own.

Usage: python -m tests.support.flower.simulated FOLDER SECONDS

Four clients train for three rounds. Round 1 has minutes, because the runtime starts slowly. In
the second round client 0 waits until the first attempt has failed. In the third round client 1
fails once.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from cafe.flower import watch

CLIENTS, ROUNDS, PATIENT = 4, 3, 300.0


def make_client(folder: Path) -> ClientApp:
    """A client that adds its number to the model, late or failing where the test wants it."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        partition = int(context.node_config["partition-id"])
        number = int(str(message.content.config_records["config"]["server-round"]))
        while number == 2 and partition == 0 and not (folder / "released").exists():
            time.sleep(0.05)
        failed = folder / "failed"
        if number == 3 and partition == 1 and not failed.exists():
            failed.touch()
            raise RuntimeError("told to fail once")
        arrays = [
            part + partition for part in message.content.array_records["arrays"].to_numpy_ndarrays()
        ]
        metrics = MetricRecord({"num-examples": 1})
        content = RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics})
        return Message(content, reply_to=message)

    return app


def make_server(folder: Path, seconds: float) -> ServerApp:
    """FedAvg on a watched Grid; only the first attempt of the second round is short."""
    app = ServerApp()

    def deadline(ledger: Any, seen: Any) -> float:
        if ledger.round == 2:
            (folder / "released").touch()
        return seconds if ledger.round == 1 else PATIENT

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = FedAvg(
            fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS
        )
        result = strategy.start(
            grid=watch(grid, deadline=deadline, quorum=CLIENTS, log=folder / "responses.csv"),
            initial_arrays=ArrayRecord([np.zeros(2)]),
            num_rounds=ROUNDS,
        )
        np.save(folder / "model.npy", result.arrays.to_numpy_ndarrays()[0])
        (folder / "grid").write_text(type(grid).__name__)

    return app


if __name__ == "__main__":
    place = Path(sys.argv[1])
    run_simulation(
        make_server(place, float(sys.argv[2])),
        make_client(place),
        num_supernodes=CLIENTS,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
