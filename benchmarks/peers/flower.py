"""Flower: its simulation runtime, a Ray actor per core, torch with one thread in each."""
# mypy: ignore-errors

from __future__ import annotations

import os
from functools import cache

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch.nn.functional import cross_entropy

from benchmarks.peers.serve import Laps, Play, serve
from benchmarks.peers.torch_model import network, tensors
from benchmarks.workloads import RATE, Workload


def client(workload: Workload) -> ClientApp:
    """A client app that takes a workload's steps; each actor prepares data and model once."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        held, model = ready(workload)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
        x, y = held[context.node_config["partition-id"]]
        for _ in range(workload.steps):
            rows = torch.randint(len(x), (workload.batch,))
            optimiser.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
        content = {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord({"num-examples": len(x)}),
        }
        return Message(RecordDict(content), reply_to=message)

    return app


@cache
def ready(workload: Workload):
    """The data and a model, cached in each actor."""
    torch.set_num_threads(1)
    return tensors(workload), network(workload)


def prepare(workload: Workload) -> Play:
    def play(rounds: int) -> float:
        laps, server = Laps(), ServerApp()

        @server.main()
        def main(grid, context) -> None:
            # The fraction rounds to 0 nodes, so that min_train_nodes decides.
            strategy = FedAvg(
                fraction_train=1e-9,
                fraction_evaluate=0.0,
                min_train_nodes=workload.cohort,
                min_available_nodes=workload.clients,
            )
            start = ArrayRecord(network(workload).state_dict())
            strategy.start(
                grid,
                start,
                num_rounds=rounds + 1,
                evaluate_fn=lambda at, arrays: laps.end() if at else None,
            )

        run_simulation(
            server,
            client(workload),
            workload.clients,
            backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
        )
        return laps.seconds()

    return play


if __name__ == "__main__":
    from benchmarks.peers import flower  # not __main__: actors must be able to import ``ready``

    serve(flower.prepare)
