"""A client, which trains on its own examples, and stops when the server no longer waits."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from cafe.flower import client
from cafe.live import Job, Trained

from . import task


def train(model: task.Model, job: Job) -> Trained:
    """Take as many steps of gradient descent on 32 examples as the server asks for."""
    torch.set_num_threads(1)  # several nodes share this machine
    x, y = task.held_by(job.settings["partition-id"], job.settings["num-partitions"])
    net, rng = task.with_arrays(model), job.rng()
    optimiser = torch.optim.SGD(net.parameters(), lr=task.RATE)
    for _ in range(job.work.steps):
        job.check()
        rows = torch.from_numpy(rng.integers(len(x), size=32))
        optimiser.zero_grad()
        torch.autograd.backward(cross_entropy(net(x[rows]), y[rows]))
        optimiser.step()
    return Trained(task.arrays_of(net), examples=len(x))


app = client(train)
