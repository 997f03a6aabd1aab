"""The reference's models: every report is trained when it arrives, one client at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.engine.batches import Batches
from cafe.learn.base import Score
from cafe.randomness import Stream
from cafe.reference.reference_jobs import ReferenceJob
from cafe.rounds.answers import Merge
from cafe.task import Task


class Trainer:
    """All versions of the model, and the vectors that clients add to their gradients.

    Args:
        task: what is learned.
        seed: the seed of the initial model and the batches.
    """

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed = task, seed
        self.models = [task.learner.start(Stream(seed, "start").at(0))]
        self.given: list[int] = []  # versions that set_model added
        self.moments: tuple[Any, ...] = ()
        self.common: Any = None  # what every client adds to its gradients
        self.own: dict[int, Any] = {}  # what single clients add as well
        self.frozen: Any = None  # which parameters no client changes

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        return len(self.task.learner.save(self.models[0]))

    @property
    def has_vectors(self) -> bool:
        """Whether clients add vectors to their gradients, or do not change some parameters."""
        return bool(self.own) or self.common is not None or self.frozen is not None

    def clear_vectors(self) -> None:
        """Send later jobs no vectors."""
        self.common, self.own, self.frozen = None, {}, None

    def set_model(self, model: Any) -> None:
        """Add a version that was not made by an update."""
        self.models.append(model)
        self.given.append(len(self.models) - 1)

    def score(self) -> Score:
        """The score of the last model."""
        test = self.task.held if self.task.test is None else self.task.test
        with np.errstate(all="ignore"):
            return self.task.learner.score(self.models[-1], test)

    def offset(self, client: int) -> Any:
        """The sum of the common vector and a client's own; None if there is neither."""
        parts = [part for part in (self.common, self.own.get(client)) if part is not None]
        return sum(parts[1:], parts[0]) if parts else None

    def train(self, job: ReferenceJob) -> None:
        """Compute a job's steps one by one, from the global model or the client's local model."""
        task, client = self.task, np.array([job.client])
        job.base = self.models[job.began]
        model = job.base if job.before is None else job.before.model
        updates = job.version - sum(version <= job.version for version in self.given)
        job.rate = rate = task.rate_at(job.round, updates)
        local = Batches(task, self.seed).local_steps(
            client, np.array([[job.invitation]]), np.array([[rate]]), np.array([[job.steps]]),
            job.work,
        )  # fmt: skip
        if job.before is None:
            share = local.weight[0, 0] / local.weight[0, 0].sum()
            with np.errstate(all="ignore"):  # the loss of a diverged model may be infinite
                loss = task.learner.losses(model, task.data, local.rows[0, 0])
                job.loss = float((loss * local.weight[0, 0]).sum() / local.weight[0, 0].sum())
                job.rms_loss = float(np.sqrt((loss.astype(float) ** 2 * share).sum()))
        else:
            job.loss, job.rms_loss = job.before.loss, job.before.rms_loss
        with np.errstate(all="ignore"):  # a model that is not finite is never merged
            for rows, weight, step in zip(
                local.rows[0], local.weight[0], local.rate[0], strict=True
            ):
                slope = task.learner.gradient(model, task.data, rows, weight)
                if job.work.prox:
                    slope = slope + (model - job.base) * job.work.prox
                if job.offset is not None:
                    slope = slope + task.learner.load(job.offset)
                if job.frozen is not None:
                    free = np.where(job.frozen, np.float32(0.0), task.learner.save(slope))
                    slope = task.learner.load(free)
                model = model - slope * float(step)
        job.model = model

    def move(
        self,
        jobs: list[ReferenceJob],
        used: dict[ReferenceJob, float],
        merge: Merge,
        optimiser: Any,
    ) -> bool:
        """Make the next version of the model.

        Args:
            jobs: the jobs of all reports.
            used: the jobs with a coefficient that is not 0.
            merge: what the policy returned.
            optimiser: the policy's server optimiser; None: the task's.

        Returns:
            False, and nothing is changed, if the new model would contain NaN or infinity.
        """
        task, moments = self.task, self.moments
        with np.errstate(all="ignore"):
            model = self.models[-1] * merge.keep
            for job, coefficient in used.items():
                what = job.model if merge.of == "model" else job.model - job.base
                model = model + what * coefficient
            if merge.add is not None:
                model = model + task.learner.load(np.asarray(merge.add, dtype=np.float32))
            server = optimiser or task.server
            if server is not None:
                step, moments = server.step(model - self.models[-1], moments)
                model = self.models[-1] + step
        if not np.isfinite(task.learner.save(model)).all():
            return False
        self.models.append(model)
        self.moments = moments
        if merge.offset is not None:
            self.own |= {job.client: np.array(r) for job, r in zip(jobs, merge.offset, strict=True)}
        self.common = self.common if merge.common is None else np.array(merge.common)
        self.frozen = self.frozen if merge.frozen is None else np.array(merge.frozen)
        return True

    def describe(self, jobs: list[ReferenceJob], needs: frozenset[str]) -> dict[str, Any]:
        """The columns of reports that a policy needs, by name."""
        found: dict[str, Any] = {}
        task, save = self.task, self.task.learner.save
        none = np.empty((0, self.parameters), dtype=np.float32)
        if needs & {"updates", "models"}:
            with np.errstate(all="ignore"):
                rows = [save(job.model - job.base) for job in jobs]
            found["updates"] = np.stack(rows) if rows else none
        if "models" in needs:
            found["models"] = np.stack([save(job.model) for job in jobs]) if jobs else none
            found["model"] = np.array(save(self.models[-1]))
        if "offsets" in needs:
            zeros = np.zeros(self.parameters, dtype=np.float32)
            rows = [zeros if job.offset is None else job.offset for job in jobs]
            found["offsets"] = np.array(rows, dtype=np.float32).reshape(-1, len(zeros))
            found["common"] = zeros if self.common is None else self.common
        if "rates" in needs:
            found["rates"] = np.array([job.rate for job in jobs], dtype=float)
        if "losses" in needs:
            found["losses"] = np.array([job.loss for job in jobs])
        if "rms losses" in needs:
            found["rms_losses"] = np.array([job.rms_loss for job in jobs])
        if "labels" in needs:
            y, classes = task.data.y, task.data.classes
            counts = [[0] * classes for _ in jobs]
            for job, row in zip(jobs, counts, strict=True):
                for label in y[task.shards[job.client]].tolist():
                    row[label] += 1
            found["labels"] = np.array(counts, dtype=np.int64).reshape(len(jobs), classes)
        return found
