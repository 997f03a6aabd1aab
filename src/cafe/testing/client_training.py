"""Training functions and models for clients on a virtual wire."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.engine.batches import Batches
from cafe.live.client_work import Job, Train, Trained
from cafe.live.model_layout import Arrays, Layout
from cafe.task import Task


def engine_trainer(task: Task, seed: int) -> Train:
    """A training function for a :class:`~cafe.testing.VirtualWire` that trains as the engine does.

    It takes the same steps on the same batches. The model's arrays, concatenated, are the
    learner's vector.

    Args:
        task: what is learned.
        seed: seed of the run.

    Example:
        >>> import cafe
        >>> from cafe.testing.check import small_task
        >>> who, what = cafe.Federation(3, cafe.Constant(1.0)), small_task(3)
        >>> wire = cafe.testing.VirtualWire(who, train=cafe.testing.engine_trainer(what, seed=0))
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
            rate=float(rate[0, 0]),
        )

    return train


def split_in_two(vector: Any) -> Arrays:
    """A vector as a model of two arrays, to test that the layout of a model does not matter.

    Example:
        >>> import numpy as np
        >>> {name: len(part) for name, part in split_in_two(np.zeros(10)).items()}
        {'first': 3, 'rest': 7}
    """
    return {"first": vector[:3], "rest": vector[3:]}
