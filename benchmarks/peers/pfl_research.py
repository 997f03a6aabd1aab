"""pfl-research: its federated averaging on its simulated backend, a process per core."""
# mypy: ignore-errors

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch.nn.functional import cross_entropy

from benchmarks.peers.serve import Laps, Play, serve
from benchmarks.peers.torch_model import network, tensors
from benchmarks.workloads import RATE, Workload


class Net(torch.nn.Module):
    """The network with the methods that pfl requires."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self.layers = network(workload)

    def loss(self, x, y):
        """The loss, which training minimises."""
        return cross_entropy(self.layers(x), y)

    def metrics(self, x, y):
        """The metrics, which pfl evaluates in the first round."""
        return {"loss": Weighted(float(self.loss(x, y)), len(x))}


class AtRoundEnd(TrainingProcessCallback):
    """Records the times at which rounds end."""

    def __init__(self, laps: Laps) -> None:
        self._laps = laps

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Record the end of a round; False means that training continues."""
        self._laps.end()
        return False, Metrics()


def prepare(workload: Workload) -> Play:
    users = [Dataset(raw_data=[x, y], user_id=f"{k}") for k, (x, y) in enumerate(tensors(workload))]
    sampler = get_user_sampler("minimize_reuse", range(workload.clients))
    data = FederatedDataset(users.__getitem__, sampler)
    net = Net(workload)
    model = PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0))
    train = NNTrainHyperParams(
        local_batch_size=workload.batch,
        local_num_epochs=None,
        local_num_steps=workload.steps,
        local_learning_rate=RATE,
    )

    def play(rounds: int) -> float:
        laps = Laps()
        FederatedAveraging().run(
            NNAlgorithmParams(
                central_num_iterations=rounds + 1,
                evaluation_frequency=10**9,  # it evaluates in the first round, which is not timed
                train_cohort_size=workload.cohort,
                val_cohort_size=0,
            ),
            SimulatedBackend(data, data),
            model,
            train,
            callbacks=[AtRoundEnd(laps)],
        )
        return laps.seconds()

    return play


def questions(rank: int) -> Iterator[str]:
    """Requests, which the first process reads and sends to the others; an empty line ends them."""
    while True:
        line = [sys.stdin.readline() if rank == 0 else None]
        torch.distributed.broadcast_object_list(line)
        if not line[0]:
            return
        yield line[0]


if __name__ == "__main__":
    rank = torch.distributed.get_rank()  # importing pfl has created the process group
    serve(prepare, questions(rank), silent=rank > 0)
    torch.distributed.destroy_process_group()
