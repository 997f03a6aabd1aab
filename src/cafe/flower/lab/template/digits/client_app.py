"""A client, which trains on its own examples, and stops when the server no longer waits."""

from __future__ import annotations

import numpy as np

from cafe.flower import client
from cafe.live import Job, Trained

from . import task


def train(model: task.Model, job: Job) -> Trained:
    """Do the work that the server asks for, and report all that any policy may need."""
    x, y = task.held_by(job.settings["partition-id"], job.settings["num-partitions"])
    first, steps = np.empty(0, np.float32), 0
    for rows in job.batches(len(y), size=32):
        losses, gradient = task.losses_and_gradient(model, x[rows], y[rows])
        if not steps:
            first = losses
        model = {
            name: array - task.RATE * (gradient[name] + job.pull(name, array))
            for name, array in model.items()
        }
        steps += 1
    return Trained(
        model,
        examples=len(y),
        loss=first.mean(),
        rms_loss=np.sqrt((first**2).mean()),
        steps=steps,
        labels=np.bincount(y, minlength=10).tolist(),
        rate=float(task.RATE),
    )


app = client(train)
