"""The data plane of a run: models, and the updates that decisions ask for, computed late.

Nothing is computed when a job starts or reports. A job leaves only its address (client, invitation,
version); when a merge gives it a coefficient, its batches are worked out and its gradients taken,
all of an update's jobs together. Jobs that are thrown away cost nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.engine.batches import Batches
from cafe.engine.job_chains import NO_LINK, Call, Chain, JobChains, Link, kind_of
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.base import Model, Score
from cafe.learn.local_steps import LocalSteps, Weights
from cafe.rounds.answers import Merge
from cafe.rounds.client_vectors import ClientVectors
from cafe.rounds.jobs import Jobs, Mask, Reports, Whole, Work, take_rows
from cafe.task import Task


@dataclass(eq=False)
class Training:
    """The global model, the versions still needed, and the clients' local models as recipes.

    Attributes:
        task: what is learned.
        seed: of the batches and the start.
        models: the model by version, for those that a job may still begin from or refer to.
        version: how many updates there have been.
        chains: the local models that clients keep.
        begun: the local models that running jobs go on from, by client.
        calls: the invitations whose jobs may still be merged, by number.
        moments: what the server optimiser remembers.
        given: the versions that came from outside, and were not made by an update.
        reported: what paths have led to, a row each, where clients do not train by gradient steps
            on the task's examples, and have done all their work already; None where they do.
        vectors: what clients add to their gradients, and which parameters they leave as they are.
    """

    task: Task
    seed: int
    models: dict[int, Model]
    version: int = 0
    chains: dict[int, Chain] = field(default_factory=dict)
    begun: dict[int, Chain] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    moments: tuple[Any, ...] = ()
    given: list[int] = field(default_factory=list)
    reported: Callable[[JobChains], NDArray[np.float32]] | None = None
    vectors: ClientVectors = field(default_factory=ClientVectors)

    def __post_init__(self) -> None:
        self.batches = Batches(self.task, self.seed)

    @property
    def model(self) -> Model:
        """The global model."""
        return self.models[self.version]

    @property
    def bytes(self) -> int:
        """The size of the model."""
        return self.task.learner.save(self.model).nbytes

    def set_model(self, model: Model) -> None:
        """Replace the global model by one from outside, as a new version."""
        self.version += 1
        self.models[self.version] = model
        self.given.append(self.version)

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return len(self.task.learner.save(self.model))

    def begin(self, invitation: int, round_: int, work: Work, local: Indices) -> None:
        """Note what an invitation's jobs do, and what those of some clients go on from."""
        self.calls[invitation] = Call(round_, kind_of(work))
        if len(local):
            self.begun |= {client: self.chains[client] for client in local.tolist()}

    def chains_of(self, jobs: Jobs) -> list[Chain]:
        """What jobs amount to: what their client went on from, and one more."""
        columns = (jobs.client, jobs.local, jobs.invitation, jobs.version, jobs.steps)
        return [
            (*(self.begun[client] if local else ()), Link(invitation, version, steps))
            for client, local, invitation, version, steps in zip(
                *map(np.ndarray.tolist, columns), strict=True
            )
        ]

    def paths(self, jobs: Jobs, index: Indices, held: Indices) -> JobChains:
        """The paths of some jobs that reported, then of clients whose kept reports are held."""
        if not len(held) and not (jobs.local.any() and jobs.local[index].any()):
            columns = (jobs.invitation, jobs.version, jobs.steps)
            picked = (take_rows(column, index)[:, None] for column in columns)
            return JobChains(jobs.client[index], *picked)
        jobs = jobs.take(index)
        chains = [*self.chains_of(jobs), *(self.chains[client] for client in held.tolist())]
        longest = max(map(len, chains))
        padded = np.array([chain + (NO_LINK,) * (longest - len(chain)) for chain in chains])
        clients = np.concatenate([jobs.client, held])
        return JobChains(clients, padded[:, :, 0], padded[:, :, 1], padded[:, :, 2])

    def seen(self, reports: Reports, paths: JobChains, needs: frozenset[str]) -> Reports:
        """The reports with what a policy needs to see of them."""
        found: dict[str, Any] = {}
        if "updates" in needs:
            found["updates"] = self.updates(paths)
        if needs & {"losses", "rms losses"}:
            mean, rms = self.losses(paths)
            if "losses" in needs:
                found["losses"] = mean
            if "rms losses" in needs:
                found["rms_losses"] = rms
        if "labels" in needs:
            found["labels"] = labels(self.task, paths.client)
        if "offsets" in needs:
            vectors, size = self.vectors, self.parameters
            found["offsets"] = vectors.offsets(reports.client, reports.invitation, size)
            found["common"] = vectors.common_or_zeros(size)
        return replace(reports, **found)

    def merge(
        self, paths: JobChains, merge: Merge, updates: NDArray[np.float32] | None = None
    ) -> bool:
        """Move the global model by what the reports amount to, times their coefficients.

        False, and nothing is changed, if the new model would have numbers that are not finite.

        Args:
            paths: of all reports.
            merge: what the policy decided.
            updates: those of the reports, where they are known already.
        """
        if updates is None and self.reported is not None:
            updates = self.reported(paths)
        model = self.model
        with np.errstate(all="ignore"):  # looked for below
            change = (
                self._change(paths, merge) if updates is None else self._sum(paths, merge, updates)
            )
            if merge.keep != 1.0:
                change = change - model * (1.0 - merge.keep)
            moments = self.moments
            if self.task.server is None:
                change += model
            else:
                step, moments = self.task.server.step(change, moments)
                change = model + step
            if not finite(change):
                return False
        self.version += 1
        self.models[self.version], self.moments = change, moments
        return True

    def _change(self, paths: JobChains, merge: Merge) -> Model:
        """The sum of coefficient times update or model. The caller owns it."""
        used = np.flatnonzero(merge.coefficient)
        coefficient = merge.coefficient[used].astype(np.float32)
        if len(used) < len(paths):
            paths = paths.take(used)
        whole: Model = None
        for version, works, some in self._alike(paths):
            model, share = self.models[version], coefficient[some]
            part = self._weighted_update(model, self._pushed(paths.take(some), works), share)
            if merge.of == "model":
                part = part + model * float(share.sum())
            whole = part if whole is None else whole + part
        return self.model * 0.0 if whole is None else whole

    def _sum(self, paths: JobChains, merge: Merge, updates: NDArray[np.float32]) -> Model:
        """The same with updates that are known already."""
        saved = np.asarray(merge.coefficient, dtype=np.float32) @ updates
        whole = self.task.learner.load(saved)
        if merge.of == "model":
            for k in np.flatnonzero(merge.coefficient):
                model = self.models[int(paths.versions[k, 0])]
                whole = whole + model * float(merge.coefficient[k])
        return whole

    def _weighted_update(self, model: Model, local: LocalSteps, coefficient: Weights) -> Model:
        """The sum of coefficient times update, of clients that start from one model."""
        learner, data = self.task.learner, self.task.data
        with np.errstate(all="ignore"):
            if local.rate.shape[1] > 1 or not local.plain:
                return learner.update(model, data, local, coefficient)
            # One step each from one model: a single weighted loss over all batches.
            weight = local.weight[:, 0] * (local.rate * -coefficient[:, None])
            return learner.gradient(model, data, local.rows.ravel(), weight.ravel())

    def updates(self, paths: JobChains) -> NDArray[np.float32]:
        """Each path's own update, for a policy that needs to see them."""
        if self.reported is not None:
            return self.reported(paths)
        rows: dict[int, NDArray[np.float32]] = {}
        for version, works, some in self._alike(paths):
            local, learner = self._pushed(paths.take(some), works), self.task.learner
            with np.errstate(all="ignore"):
                found = learner.updates(self.models[version], self.task.data, local)
            rows |= {int(k): learner.save(row) for k, row in zip(some, found, strict=True)}
        if not rows:
            return np.empty((0, len(self.task.learner.save(self.model))), dtype=np.float32)
        return np.stack([rows[k] for k in range(len(paths))])

    def losses(self, paths: JobChains) -> tuple[Floats, Floats]:
        """The loss on the first batch of each path, before any step: its mean, and mean square."""
        mean, rms = np.empty(len(paths)), np.empty(len(paths))
        for version, works, some in self._alike(paths):
            local = self._local_steps(paths.take(some), works)
            rows, weight = local.rows[:, 0], local.weight[:, 0]
            share = weight / weight.sum(axis=1, keepdims=True)
            with np.errstate(all="ignore"):  # of a model that diverges it may not be finite
                loss = self.task.learner.losses(self.models[version], self.task.data, rows.ravel())
                loss = loss.reshape(rows.shape)
                mean[some] = (loss * weight).sum(axis=1) / weight.sum(axis=1)
                rms[some] = np.sqrt((loss.astype(float) ** 2 * share).sum(axis=1))
        return mean, rms

    def _alike(self, paths: JobChains) -> list[tuple[int, tuple[Work, ...], Indices]]:
        """Which paths can be trained together: those from one version with the same work.

        One kind of work for all their jobs, however many these are, or one for each.
        """
        if not len(paths):
            return []
        everyone = np.arange(len(paths))
        if paths.one_job:
            work = self.calls[int(paths.invitations[0, 0])].work
            return [(int(paths.versions[0, 0]), (work,), everyone)]
        numbers = {int(number) for number in np.unique(paths.invitations) if number >= 0}
        works = {self.calls[number].work for number in numbers}
        first = paths.versions[:, 0]
        if len(works) == 1 and (first == first[0]).all():
            return [(int(first[0]), tuple(works), everyone)]
        kinds: dict[tuple[int, tuple[Work, ...]], list[int]] = {}
        for k in everyone.tolist():
            each = tuple(self.calls[link.invitation].work for link in paths.chain(k))
            kind = (int(first[k]), each if len(set(each)) > 1 else each[:1])
            kinds.setdefault(kind, []).append(k)
        return [(version, each, np.array(some)) for (version, each), some in kinds.items()]

    def _pushed(self, paths: JobChains, works: tuple[Work, ...]) -> LocalSteps:
        """The local steps of paths that are alike, with the vectors in force when they began."""
        local, vectors = self._local_steps(paths, works), self.vectors
        if not vectors.begun:
            return local
        # Only paths of one job add vectors: then nobody goes on from a local model. Jobs that began
        # from one version have one mask: both change in the same merge.
        numbers = paths.invitations[:, 0]
        used = [vectors.used_by(number) for number in set(numbers.tolist())]
        offset = None
        if any(each.common is not None or each.own for each in used):
            offset = vectors.offsets(paths.client, numbers, self.parameters)
        return replace(local, offset=offset, frozen=used[0].frozen)

    def _local_steps(self, paths: JobChains, works: tuple[Work, ...]) -> LocalSteps:
        rates = np.zeros(paths.invitations.shape)
        if paths.one_job:
            number, version = int(paths.invitations[0, 0]), int(paths.versions[0, 0])
            updates = version - bisect_right(self.given, version)
            rates[:] = self.task.rate_at(self.calls[number].round, updates)
            return self.batches.local_steps(
                paths.client, paths.invitations, rates, paths.steps, works[0]
            )
        columns = (paths.invitations.ravel().tolist(), paths.versions.ravel().tolist())
        jobs = set(zip(*columns, strict=True))
        for number, version in jobs:
            if number < 0:
                continue
            updates = version - bisect_right(self.given, version)
            rate = self.task.rate_at(self.calls[number].round, updates)
            if len(jobs) == 1:
                rates[:] = rate
            else:
                rates[(paths.invitations == number) & (paths.versions == version)] = rate
        if len(works) == 1:
            return self.batches.local_steps(
                paths.client, paths.invitations, rates, paths.steps, works[0]
            )
        parts = []
        for at, work in enumerate(works):
            job = slice(at, at + 1)
            parts.append(
                self.batches.local_steps(
                    paths.client,
                    paths.invitations[:, job],
                    rates[:, job],
                    paths.steps[:, job],
                    work,
                )
            )
        return reduce(LocalSteps.then, parts)

    def keep(self, jobs: Jobs) -> None:
        """Remember the local models that jobs have reported, as the way to them."""
        self.chains |= dict(zip(jobs.client.tolist(), self.chains_of(jobs), strict=True))

    def forget(self, running: Jobs, keeps: Mask) -> None:
        """Let go of all that nothing refers to: chains, versions of the model, invitations."""
        if self.chains:
            self.chains = {k: chain for k, chain in self.chains.items() if keeps[k]}
        if self.begun:
            going_on = set(running.client[running.local].tolist())
            self.begun = {k: chain for k, chain in self.begun.items() if k in going_on}
        chains = [*self.chains.values(), *self.begun.values()]
        numbers = {link.invitation for chain in chains for link in chain}
        numbers |= set(running.invitation.tolist())
        self.calls = {number: call for number, call in self.calls.items() if number in numbers}
        self.vectors.forget(numbers)
        needed = {self.version, *running.version.tolist(), *(chain[0].version for chain in chains)}
        self.models = {v: m for v, m in self.models.items() if v in needed}

    def score(self) -> Score:
        """How good the global model is on the task's test examples."""
        test = self.task.held if self.task.test is None else self.task.test
        with np.errstate(all="ignore"):  # a model that diverges is its loss's business to show
            return self.task.learner.score(self.model, test)


def finite(model: Model) -> bool:
    """Whether all numbers of a model are finite, of NumPy's or another kind of array."""
    if math.isfinite(float(model @ model)):
        return True
    return bool((model - model == 0).all())  # the square may be too large and the model not


def labels(task: Task, clients: Indices) -> Whole:
    """How many examples of each class clients hold, a row per client."""
    found = np.zeros((len(clients), task.data.classes), dtype=np.int64)
    for k, client in enumerate(clients.tolist()):
        found[k] = np.bincount(task.data.y[task.shards[client]], minlength=task.data.classes)
    return found
