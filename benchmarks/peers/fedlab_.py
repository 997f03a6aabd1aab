"""FedLab: its standalone pipeline with serial clients, no evaluation."""
# mypy: ignore-errors
# ruff: noqa: E402

from __future__ import annotations

import logging
import sys
from unittest.mock import MagicMock

# FedLab's own datasets, which are not used here, import torchvision. Its wheel cannot be imported
# with a torch that was built without CUDA.
sys.modules |= {"torchvision": MagicMock(), "torchvision.transforms": MagicMock()}

import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline

from benchmarks.peers.serve import Laps, Play, serve
from benchmarks.peers.torch_model import network, tensors
from benchmarks.workloads import RATE, Workload


class Batches:
    """A dataset with the method that FedLab calls, which yields a client's batches.

    It does not use torch's DataLoader, which fetches single examples and is much slower.
    """

    def __init__(self, workload: Workload) -> None:
        self._held = tensors(workload)
        self._steps = workload.steps

    def get_dataloader(self, client, batch_size):
        """One batch per step, drawn with replacement."""
        x, y = self._held[client]
        for _ in range(self._steps):
            rows = torch.randint(len(x), (batch_size,))
            yield x[rows], y[rows]


class Timed(StandalonePipeline):
    """The pipeline with times: it calls ``evaluate`` at the end of every round."""

    def __init__(self, handler, trainer) -> None:
        super().__init__(handler, trainer)
        self.laps = Laps()

    def evaluate(self) -> None:
        """Record the end of a round."""
        self.laps.end()


def prepare(workload: Workload) -> Play:
    logging.disable()
    data, model = Batches(workload), network(workload)

    def play(rounds: int) -> float:
        trainer = SGDSerialClientTrainer(model, workload.clients)
        trainer.setup_dataset(data)
        trainer.setup_optim(epochs=1, batch_size=workload.batch, lr=RATE)
        share = (workload.cohort + 0.5) / workload.clients  # FedLab rounds down
        pipeline = Timed(SyncServerHandler(model, rounds + 1, share), trainer)
        pipeline.main()
        return pipeline.laps.seconds()

    return play


if __name__ == "__main__":
    serve(prepare)
