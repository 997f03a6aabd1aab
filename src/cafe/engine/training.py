"""The models of a run, and the updates of clients, which are computed as late as possible.

Nothing is computed when a job starts or reports: only its client, invitation and version are
stored. When a merge gives it a coefficient, its batches are drawn and its gradients computed,
together with all other jobs of the update. Discarded jobs cost no gradients.
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

from cafe.data.examples import Examples
from cafe.engine.batches import Batches
from cafe.engine.job_chains import JobChains
from cafe.engine.local_models import ChainStore
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.base import Model, Score, is_costly
from cafe.learn.local_steps import LocalSteps, Weights
from cafe.learn.server_optimisers import ServerOptimiser
from cafe.randomness import Stream
from cafe.rounds import answer_checks
from cafe.rounds.answers import Merge
from cafe.rounds.client_vectors import ClientVectors
from cafe.rounds.jobs import Jobs, Mask, Reports, Running, Status, Whole, Work
from cafe.rounds.policy import PER_CLIENT_NEEDS, Policy
from cafe.task import Task


@dataclass(eq=False)
class Training:
    """The global model, and what is needed to compute the updates of jobs.

    Attributes:
        task: what is learned.
        seed: the seed of the batches and the initial model.
        models: by version, the global models that jobs started from and later merges may need.
        version: the version of the global model.
        chains: the jobs whose models later merges may need.
        moments: the state of the server optimiser.
        given: the versions that :meth:`set_model` set, and no update made.
        computed_updates: returns the updates of chains, one row each, if clients have computed them
            already; None: clients take gradient steps on the task's examples, computed here.
        vectors: what clients add to their gradients, and which parameters they do not change.
        server: the server optimiser; None adds updates to the model.
        examples_trained: for how many examples gradients have been computed, with repetitions;
            counted only if the learner is costly.
    """

    task: Task
    seed: int
    models: dict[int, Model]
    version: int = 0
    chains: ChainStore = field(default_factory=ChainStore)
    moments: tuple[Any, ...] = ()
    given: list[int] = field(default_factory=list)
    computed_updates: Callable[[JobChains], NDArray[np.float32]] | None = None
    vectors: ClientVectors = field(default_factory=ClientVectors)
    server: ServerOptimiser | None = None
    examples_trained: int = 0

    @classmethod
    def new(cls, task: Task, seed: int) -> Training:
        """Training before the first round."""
        return cls(task, seed, {0: task.learner.start(Stream(seed, "start").at(0))})

    def __post_init__(self) -> None:
        self.batches = Batches(self.task, self.seed)
        self._some: Examples | None = None  # a part of the examples to evaluate on

    @property
    def model(self) -> Model:
        """The global model."""
        return self.models[self.version]

    @property
    def bytes(self) -> int:
        """The size of the model in bytes."""
        return self.task.learner.save(self.model).nbytes

    def set_model(self, model: Model) -> None:
        """Replace the global model by one from outside, as a new version."""
        self.version += 1
        self.models[self.version] = model
        self.given.append(self.version)

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        return len(self.task.learner.save(self.model))

    def start(self, invitation: int, round_: int, work: Work, jobs: Running, policy: Policy) -> int:
        """Remember what the jobs of an invitation need; nothing is computed yet.

        Returns:
            How many of the clients are sent a vector that they add to their gradients.

        Raises:
            InputError: if a job continues from a local model while clients add vectors.
        """
        self.chains.start(invitation, round_, work, jobs)
        if not self.vectors.used:
            return 0
        if jobs.local.any():
            raise answer_checks.local_models_error(policy)
        began = jobs.client[jobs.status != Status.ABSENT]
        return self.vectors.begin(invitation, jobs.client).count(began)

    def describe(self, reports: Reports, chains: JobChains, needs: frozenset[str]) -> Reports:
        """The reports with what a policy needs to see of each; this may compute gradients."""
        if not needs & PER_CLIENT_NEEDS:
            return reports
        found: dict[str, Any] = {}
        if needs & {"updates", "models"}:
            found["updates"] = self.updates(chains)
        if "models" in needs:
            found |= self._clear_models(chains, found["updates"])
        if needs & {"losses", "rms losses"}:
            mean, rms = self.losses(chains)
            if "losses" in needs:
                found["losses"] = mean
            if "rms losses" in needs:
                found["rms_losses"] = rms
        if "labels" in needs:
            found["labels"] = labels(self.task, chains.client)
        if "offsets" in needs:
            vectors, size = self.vectors, self.parameters
            found["offsets"] = vectors.offsets(reports.client, reports.invitation, size)
            found["common"] = vectors.common_or_zeros(size)
        if "rates" in needs:
            last = (chains.invitations >= 0).sum(axis=1) - 1
            found["rates"] = self._rates(chains)[np.arange(len(chains)), last]
        return replace(reports, **found)

    def merge(self, chains: JobChains, reports: Reports, merge: Merge) -> bool:
        """Compute the updates that the policy has given a coefficient, and move the global model.

        Args:
            chains: the chains of all reports.
            reports: what the policy has seen.
            merge: what the policy decided.

        Returns:
            False, and nothing is changed, if the new model would contain NaN or infinity.
        """
        updates = reports.updates
        if updates is None and self.computed_updates is not None:
            updates = self.computed_updates(chains)
        model = self.model
        with np.errstate(all="ignore"):  # the result is checked below
            if updates is None:
                change = self._change(chains, merge)
            else:
                change = self._sum(chains, merge, updates)
            if merge.keep != 1.0:
                change = change - model * (1.0 - merge.keep)
            moments = self.moments
            if merge.add is not None:
                added = np.asarray(merge.add, dtype=np.float32)
                change = change + self.task.learner.load(added)
            if self.server is None:
                change += model
            else:
                step, moments = self.server.step(change, moments)
                change = model + step
            if not finite(change):
                return False
        self.version += 1
        self.models[self.version], self.moments = change, moments
        self.vectors.adopt(merge, reports.client)
        return True

    def _change(self, chains: JobChains, merge: Merge) -> Model:
        """The sum of coefficient times update or model, computed here. The caller may change it."""
        used = np.flatnonzero(merge.coefficient)
        coefficient = merge.coefficient[used].astype(np.float32)
        if len(used) < len(chains):
            chains = chains.take(used)
        whole: Model = None
        for version, works, some in self._groups(chains):
            model, share = self.models[version], coefficient[some]
            local = self._steps_with_vectors(chains.take(some), works)
            part = self._weighted_update(model, local, share)
            if merge.of == "model":
                part = part + model * float(share.sum())
            whole = part if whole is None else whole + part
        return self.model * 0.0 if whole is None else whole

    def _sum(self, chains: JobChains, merge: Merge, updates: NDArray[np.float32]) -> Model:
        """The sum of coefficient times update or model, of updates that are already computed."""
        saved = np.asarray(merge.coefficient, dtype=np.float32) @ updates
        whole = self.task.learner.load(saved)
        if merge.of == "model":
            first = chains.versions[:, 0]
            for version in np.unique(first[merge.coefficient != 0]).tolist():
                share = merge.coefficient[first == version].sum()
                whole = whole + self.models[version] * float(share)
        return whole

    def _weighted_update(self, model: Model, local: LocalSteps, coefficient: Weights) -> Model:
        """The sum of coefficient times update, of clients that start from one model."""
        learner, data = self.task.learner, self.task.data
        self._count_examples(local)
        with np.errstate(all="ignore"):
            if local.rate.shape[1] > 1 or not local.plain:
                return learner.update(model, data, local, coefficient)
            # One step each from one model: a single weighted loss over all batches.
            weight = local.weight[:, 0] * (local.rate * -coefficient[:, None])
            return learner.gradient(model, data, local.rows.ravel(), weight.ravel())

    def updates(self, chains: JobChains) -> NDArray[np.float32]:
        """The update of each chain, for a policy that needs to see them."""
        if self.computed_updates is not None:
            return self.computed_updates(chains)
        rows, learner = np.empty((len(chains), self.parameters), np.float32), self.task.learner
        for version, works, some in self._groups(chains):
            local = self._steps_with_vectors(chains.take(some), works)
            self._count_examples(local)
            with np.errstate(all="ignore"):
                found = learner.updates(self.models[version], self.task.data, local)
            for k, row in zip(some.tolist(), found, strict=True):
                rows[k] = learner.save(row)
        return rows

    def _clear_models(
        self, chains: JobChains, updates: NDArray[np.float32]
    ) -> dict[str, NDArray[np.float32]]:
        """The clients' models, a row per chain, and the global model, as vectors."""
        save, models = self.task.learner.save, np.empty_like(updates)
        first = chains.versions[:, 0]
        for version in np.unique(first).tolist():
            began = save(self.models[version])
            for k in np.flatnonzero(first == version).tolist():
                np.add(began, updates[k], out=models[k])
        return {"models": models, "model": np.array(save(self.model), dtype=np.float32)}

    def losses(self, chains: JobChains) -> tuple[Floats, Floats]:
        """The mean and the root mean square loss of each chain's first batch, before any step."""
        mean, rms = np.empty(len(chains)), np.empty(len(chains))
        for version, works, some in self._groups(chains):
            local = self._local_steps(chains.take(some), works)
            rows, weight = local.rows[:, 0], local.weight[:, 0]
            share = weight / weight.sum(axis=1, keepdims=True)
            with np.errstate(all="ignore"):  # the loss of a diverged model may be infinite
                loss = self.task.learner.losses(self.models[version], self.task.data, rows.ravel())
                loss = loss.reshape(rows.shape)
                mean[some] = (loss * weight).sum(axis=1) / weight.sum(axis=1)
                rms[some] = np.sqrt((loss.astype(float) ** 2 * share).sum(axis=1))
        return mean, rms

    def _groups(self, chains: JobChains) -> list[tuple[int, tuple[Work, ...], Indices]]:
        """Chains that can be computed together: from one version, with the same work and mask.

        Returns:
            For each group its version, its works and its rows. The works are one for
            all jobs of a chain, or one for each job.
        """
        if not len(chains):
            return []
        everyone = np.arange(len(chains))
        if chains.one_job:
            work = self.chains.invitations[int(chains.invitations[0, 0])].work
            return [(int(chains.versions[0, 0]), (work,), everyone)]
        numbers = {int(number) for number in np.unique(chains.invitations) if number >= 0}
        works = {self.chains.invitations[number].work for number in numbers}
        masks = {number: id(self.vectors.used_by(number).frozen) for number in numbers}
        first = chains.versions[:, 0]
        if len(works) == 1 == len({*masks.values()}) and (first == first[0]).all():
            return [(int(first[0]), tuple(works), everyone)]
        kinds: dict[tuple[int, tuple[Work, ...], int], list[int]] = {}
        for k in everyone.tolist():
            chain = chains.chain(k)
            each = tuple(self.chains.invitations[link.invitation].work for link in chain)
            works_of = each if len(set(each)) > 1 else each[:1]
            kinds.setdefault((int(first[k]), works_of, masks[chain[0].invitation]), []).append(k)
        return [(version, each, np.array(some)) for (version, each, _), some in kinds.items()]

    def _steps_with_vectors(self, chains: JobChains, works: tuple[Work, ...]) -> LocalSteps:
        """The local steps of a group of chains, with the vectors that applied when they began."""
        local, vectors = self._local_steps(chains, works), self.vectors
        if not vectors.begun:
            return local
        # Only chains of one job add vectors, because no client continues from a local model then.
        numbers = chains.invitations[:, 0]
        used = [vectors.used_by(number) for number in set(numbers.tolist())]
        offset = None
        if any(each.common is not None or each.own for each in used):
            offset = vectors.offsets(chains.client, numbers, self.parameters)
        return replace(local, offset=offset, frozen=used[0].frozen)

    def _rates(self, chains: JobChains) -> Floats:
        """The learning rate of each job of the chains; 0 where a chain has fewer jobs."""
        rates = np.zeros(chains.invitations.shape)
        if chains.one_job:
            if len(chains):
                rates[:] = self._rate(int(chains.invitations[0, 0]), int(chains.versions[0, 0]))
            return rates
        columns = (chains.invitations.ravel().tolist(), chains.versions.ravel().tolist())
        jobs = set(zip(*columns, strict=True))
        for number, version in jobs:
            if number < 0:
                continue
            if len(jobs) == 1:
                rates[:] = self._rate(number, version)
            else:
                here = (chains.invitations == number) & (chains.versions == version)
                rates[here] = self._rate(number, version)
        return rates

    def _rate(self, invitation: int, version: int) -> float:
        """The learning rate of the jobs of an invitation that began from a version of the model."""
        updates = version - bisect_right(self.given, version)
        return self.task.rate_at(self.chains.invitations[invitation].round, updates)

    def _local_steps(self, chains: JobChains, works: tuple[Work, ...]) -> LocalSteps:
        rates = self._rates(chains)
        if len(works) == 1:
            return self.batches.local_steps(
                chains.client, chains.invitations, rates, chains.steps, works[0]
            )
        parts = []
        for at, work in enumerate(works):
            job = slice(at, at + 1)
            parts.append(
                self.batches.local_steps(
                    chains.client,
                    chains.invitations[:, job],
                    rates[:, job],
                    chains.steps[:, job],
                    work,
                )
            )
        return reduce(LocalSteps.then, parts)

    def carry_over(self, jobs: Jobs, kept: Indices, running: Jobs, keeps: Mask) -> None:
        """Remember the chains of what is kept, and drop what no later merge can need.

        Args:
            jobs: the jobs of the closed round.
            kept: those of them whose report or local model is kept.
            running: the jobs that keep running after the round.
            keeps: which clients keep a report or a local model.
        """
        if len(kept):
            self.chains.keep(jobs.take(kept))
        versions = {self.version, *self.chains.forget_unused(running, keeps)}
        self.vectors.forget(self.chains.invitations)
        self.models = {v: m for v, m in self.models.items() if v in versions}

    def _count_examples(self, local: LocalSteps) -> None:
        if is_costly(self.task.learner):
            self.examples_trained += local.examples

    def score(self, number: int | None = None) -> Score:
        """The global model's score on the test examples, or on the clients' if there are none.

        Args:
            number: how many of these examples to use; None: all.
        """
        examples = self.evaluation_examples(number)
        with np.errstate(all="ignore"):  # a diverged model has an infinite loss
            return self.task.learner.score(self.model, examples)

    def evaluation_examples(self, number: int | None = None) -> Examples:
        """The examples to evaluate on: all, or this many, which are the same in every run."""
        every = self.task.held if self.task.test is None else self.task.test
        if number is None or number >= len(every):
            return every
        if self._some is None or len(self._some) != number:
            order = Stream(0, "evaluated examples").at(0).permutation(len(every))
            self._some = every.take(np.sort(order[:number]))
        return self._some


def finite(model: Model) -> bool:
    """Whether a model contains neither NaN nor infinity. It may be a NumPy or another array."""
    with np.errstate(all="ignore"):
        if math.isfinite(float(model @ model)):
            return True
        return bool((model - model == 0).all())  # the square may overflow while it is finite


def labels(task: Task, clients: Indices) -> Whole:
    """The number of examples of each class that clients hold, a row per client."""
    found = np.zeros((len(clients), task.data.classes), dtype=np.int64)
    for k, client in enumerate(clients.tolist()):
        found[k] = np.bincount(task.data.y[task.shards[client]], minlength=task.data.classes)
    return found
