"""A client, which trains on its own examples, and stops when the server no longer waits."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from cafe.flower import client
from cafe.live import Job, Trained

from . import task


def train(model: task.Model, job: Job) -> Trained:
    """Do the work that the server asks for, and report all that any policy may need."""
    torch.set_num_threads(1)  # several nodes share this machine
    x, y = task.held_by(job.settings["partition-id"], job.settings["num-partitions"])
    net = task.with_arrays(model)
    optimiser = torch.optim.SGD(net.parameters(), lr=task.RATE)
    first, steps = torch.empty(0), 0
    for rows in job.batches(len(y), size=32):
        picked = torch.from_numpy(rows)
        losses = cross_entropy(net(x[picked]), y[picked], reduction="none")
        if not steps:
            first = losses.detach()
        optimiser.zero_grad()
        torch.autograd.backward(losses.mean())
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None
            parameter.grad += torch.from_numpy(job.pull(name, parameter.detach().numpy()))
        optimiser.step()
        steps += 1
    return Trained(
        task.arrays_of(net),
        examples=len(y),
        loss=float(first.mean()),
        rms_loss=float(first.square().mean().sqrt()),
        steps=steps,
        labels=torch.bincount(y, minlength=10).tolist(),
        rate=task.RATE,
    )


app = client(train)
