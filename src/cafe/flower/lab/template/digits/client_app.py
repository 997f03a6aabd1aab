"""A client: it trains on its own examples, and stops once nobody waits for it any more."""

from __future__ import annotations

from cafe.flower import client
from cafe.live import Job

from . import task


def train(model: task.Model, job: Job) -> task.Model:
    """As many steps as the server asks for."""
    examples = task.held_by(job.settings["partition-id"], job.settings["num-partitions"])
    rng = job.rng()
    for _ in range(job.work.steps):
        job.check()
        model = task.step(model, examples, rng)
    return model


app = client(train)
