"""Clients on a virtual wire that train as the engine would."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.engine.batches import Batches
from cafe.live.layout import Arrays
from cafe.live.wire import Trained
from cafe.live.work import Job, Train
from cafe.task import Task


def trains(task: Task, seed: int) -> Train:
    """A training function that takes the steps which the engine would take, on the same batches.

    It is for a :class:`~cafe.testing.VirtualWire`, which says how many steps a job takes, and for
    models that are cut by :func:`in_two`.

    Args:
        task: what is learned.
        seed: of the run.
    """
    batches, learner = Batches(task, seed), task.learner
    y, classes = task.data.y, task.data.classes

    def train(model: Arrays, job: Job) -> Trained:
        at, base = learner.load(_whole(model)), learner.load(_whole(job.base))
        rate = np.array([[task.rate_at(job.round, job.version)]])
        steps, address = np.array([[job.settings["steps"]]]), np.array([[job.invitation]])
        walk = batches.walks(np.array([job.number]), address, rate, steps, job.work)
        losses = np.asarray(learner.losses(at, task.data, walk.rows[0, 0]), dtype=float)
        share = walk.weight[0, 0] / walk.weight[0, 0].sum()
        for rows, weight, step in zip(walk.rows[0], walk.weight[0], walk.rate[0], strict=True):
            slope = learner.gradient(at, task.data, rows, weight)
            if job.work.prox:
                slope = slope + (at - base) * job.work.prox
            at = at - slope * float(step)
        mine = task.shards[job.number]
        counts = None if classes is None else np.bincount(y[mine], minlength=classes).tolist()
        return Trained(
            in_two(learner.save(at)),
            examples=len(mine),
            loss=float((losses * share).sum()),
            steps=int(steps[0, 0]),
            rms_loss=float(np.sqrt((losses**2 * share).sum())),
            labels=counts,
        )

    return train


def in_two(vector: Any) -> Arrays:
    """A model as two arrays: how it is cut into arrays must not matter."""
    return {"first": vector[:3], "rest": vector[3:]}


def _whole(model: Arrays) -> Any:
    return np.concatenate([model["first"], model["rest"]])
