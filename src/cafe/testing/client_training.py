"""Clients on a virtual wire that train as the engine would."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.engine.batches import Batches
from cafe.live.client_work import Job, Train, Trained
from cafe.live.model_layout import Arrays, Layout
from cafe.task import Task


def engine_trainer(task: Task, seed: int) -> Train:
    """A training function that takes the steps which the engine would take, on the same batches.

    It is for a :class:`~cafe.testing.VirtualWire`, which says how many steps a job takes. The
    model's arrays, one after the other, are the learner's vector.

    Args:
        task: what is learned.
        seed: of the run.
    """
    batches, learner = Batches(task, seed), task.learner
    classified = task.data.y.dtype.kind in "iu"
    y, classes = task.data.y, task.data.classes if classified else 0

    def train(model: Arrays, job: Job) -> Trained:
        layout, at = Layout.of(model), dict(model)
        rate = np.array([[task.rate_at(job.round, job.version)]])
        steps, address = np.array([[job.settings["steps"]]]), np.array([[job.invitation]])
        local = batches.local_steps(np.array([job.number]), address, rate, steps, job.work)
        start = learner.load(layout.flat(at))
        losses = np.asarray(learner.losses(start, task.data, local.rows[0, 0]), dtype=float)
        share = local.weight[0, 0] / local.weight[0, 0].sum()
        for rows, weight, step in zip(local.rows[0], local.weight[0], local.rate[0], strict=True):
            flat = learner.load(layout.flat(at))
            slopes = layout.parts(learner.save(learner.gradient(flat, task.data, rows, weight)))
            for name, slope in slopes.items():
                move = (slope + job.pull(name, at[name])) * step
                if name in job.frozen:
                    move = np.where(job.frozen[name], 0, move)
                at[name] = at[name] - move.astype(np.float32)
        mine = task.shards[job.number]
        counts = np.bincount(y[mine], minlength=classes).tolist() if classified else None
        return Trained(
            at,
            examples=len(mine),
            loss=float((losses * share).sum()),
            steps=int(steps[0, 0]),
            rms_loss=float(np.sqrt((losses**2 * share).sum())),
            labels=counts,
        )

    return train


def split_in_two(vector: Any) -> Arrays:
    """A model as two arrays: how it is cut into arrays must not matter."""
    return {"first": vector[:3], "rest": vector[3:]}
