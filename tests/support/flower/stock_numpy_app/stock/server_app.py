"""The server: FedAvg."""

import json
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from stock import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run FedAvg for some rounds, and write the final model and the metrics."""
    config = context.run_config
    strategy = FedAvg(fraction_train=config["fraction-train"])
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(task.new_model()),
        train_config=ConfigRecord({"lr": config["learning-rate"]}),
        num_rounds=config["num-server-rounds"],
    )
    if config["output"]:
        folder = Path(config["output"])
        np.savez(folder / "final_model.npz", *result.arrays.to_numpy_ndarrays())
        metrics = {
            "train": {n: dict(m) for n, m in result.train_metrics_clientapp.items()},
            "evaluate": {n: dict(m) for n, m in result.evaluate_metrics_clientapp.items()},
        }
        (folder / "metrics.json").write_text(json.dumps(metrics))
