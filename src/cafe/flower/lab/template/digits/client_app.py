"""A client, which trains on its own examples, and stops when the server no longer waits."""

from __future__ import annotations

from cafe.flower import client
from cafe.live import Job

from . import task


def train(model: task.Model, job: Job) -> task.Model:
    """Take as many steps as the server asks for."""
    examples = task.held_by(job.settings["partition-id"], job.settings["num-partitions"])
    rng = job.rng()
    for _ in range(job.work.steps):
        job.check()
        model = task.step(model, examples, rng)
    return model


app = client(train)
