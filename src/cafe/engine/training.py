"""The data plane of a run: models, and the updates that decisions ask for, computed late.

Nothing is computed when a job starts or reports. A job leaves only its address (client, round,
version); when a merge gives it a coefficient, its batches are worked out, all of an update's jobs
together, and the update waits in line. Gradients follow when somebody looks at the model, or when
the line is long. Jobs that are thrown away cost nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.engine.batches import Batches
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.base import Model, Score, Walks, Weights
from cafe.rounds.jobs import Jobs, Mask, Whole, Work, pick
from cafe.rounds.policy import Merge
from cafe.task import Task

Chain = tuple[tuple[int, int], ...]  # the round and version in which each of its jobs began

# So many examples wait in line at most: a few MiB of addresses, a fraction of a second of work.
# Decisions are quicker in a row than in turns with products, which clear the processor's cache.
AHEAD = 2**16


@dataclass(frozen=True, eq=False)
class Paths:
    """The ways from a global model to what was reported, a row per report.

    Most are one job long. A client that went on from its local model has a chain of them.

    Attributes:
        client: whose.
        rounds: in which each job began; -1 where a path has fewer.
        versions: of the global model when each job began. A path begins from the first.
    """

    client: Indices
    rounds: Whole
    versions: Whole

    def __len__(self) -> int:
        return len(self.client)

    def take(self, index: Indices) -> Paths:
        """Some of the paths."""
        return Paths(self.client[index], self.rounds[index], self.versions[index])

    def chain(self, row: int) -> Chain:
        """One path as numbers."""
        jobs = zip(self.rounds[row].tolist(), self.versions[row].tolist(), strict=True)
        return tuple(job for job in jobs if job[0] >= 0)


@dataclass(eq=False)
class Update:
    """An update that is decided and waits to be computed.

    Attributes:
        parts: walks from one version of the model each, with their coefficients.
        merge: what the policy decided.
        needed: the versions of the model that later updates may still refer to.
    """

    parts: list[tuple[int, Walks, Weights]]
    merge: Merge
    needed: set[int]

    @property
    def rows(self) -> int:
        """How many examples its walks learn from."""
        return sum(walks.rows.size for _, walks, _ in self.parts)


@dataclass(eq=False)
class Training:
    """The global model, the versions still needed, and the clients' local models as recipes.

    Attributes:
        task: what is learned.
        seed: of the batches and the start.
        models: the model by version, for those that a job may still begin from or refer to.
        version: how many updates have been decided.
        line: those of them that are still to be computed.
        chains: the local models that clients keep.
        begun: the local models that running jobs go on from, by client.
        works: how much work the jobs of a round do.
        moments: what the server optimiser remembers.
    """

    task: Task
    seed: int
    models: dict[int, Model]
    version: int = 0
    line: deque[Update] = field(default_factory=deque)
    chains: dict[int, Chain] = field(default_factory=dict)
    begun: dict[int, Chain] = field(default_factory=dict)
    works: dict[int, Work] = field(default_factory=dict)
    moments: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.batches = Batches(self.task, self.seed)
        self._waiting = 0  # examples in line

    @property
    def model(self) -> Model:
        """The global model."""
        self.catch_up()
        return self.models[self.version]

    def begin(self, round_: int, work: Work, local: Indices) -> None:
        """Note a round's work, and what its jobs of some clients go on from."""
        self.works[round_] = work
        self.begun |= {client: self.chains[client] for client in local.tolist()}

    def chains_of(self, jobs: Jobs) -> list[Chain]:
        """What jobs amount to: what their client went on from, and one more."""
        columns = (jobs.client, jobs.round, jobs.version, jobs.local)
        return [
            (*(self.begun[client] if local else ()), (round_, version))
            for client, round_, version, local in zip(*map(np.ndarray.tolist, columns), strict=True)
        ]

    def paths(self, jobs: Jobs, index: Indices, held: Indices) -> Paths:
        """The paths of some jobs that reported, then of clients whose kept reports are held."""
        if not len(held) and not jobs.local.any():
            columns = (pick(column, index) for column in (jobs.client, jobs.round, jobs.version))
            client, round_, version = columns
            return Paths(client, round_[:, None], version[:, None])
        jobs = jobs.take(index)
        chains = [*self.chains_of(jobs), *(self.chains[client] for client in held.tolist())]
        longest = max(map(len, chains))
        padded = np.array([chain + ((-1, -1),) * (longest - len(chain)) for chain in chains])
        clients = np.concatenate([jobs.client, held])
        return Paths(clients, padded[:, :, 0], padded[:, :, 1])

    def merge(self, paths: Paths, merge: Merge) -> None:
        """Move the global model by what the reports amount to, times their coefficients."""
        used = np.flatnonzero(merge.coefficient)
        coefficient = merge.coefficient[used].astype(np.float32)
        if len(used) < len(paths):
            paths = paths.take(used)
        parts = [
            (version, self._walks(paths.take(some), works), coefficient[some])
            for version, works, some in self._alike(paths)
        ]
        self.version += 1
        self.line.append(Update(parts, merge, set()))
        self._waiting += self.line[-1].rows

    def catch_up(self) -> None:
        """Compute the updates that wait in line."""
        while self.line:
            update, version = self.line[0], self.version - len(self.line)
            change = self._change(update, version)
            self.line.popleft()  # after what takes long: an interrupt must not lose it
            self._advance(version, change, update.merge.keep)
            self._let_go(update.needed | {version + 1})
        self._waiting = 0

    def _change(self, update: Update, version: int) -> Model:
        """What an update adds to a version of the model."""
        whole: Model = None if update.parts else self.models[version] * 0.0
        for version, walks, coefficient in update.parts:
            part = self._walked(self.models[version], walks, coefficient)
            if update.merge.of == "model":
                part = part + self.models[version] * float(coefficient.sum())
            whole = part if whole is None else whole + part
        return whole

    def merge_given(self, paths: Paths, merge: Merge, updates: NDArray[np.float32]) -> None:
        """The same with updates that are known already."""
        self.catch_up()
        saved = np.asarray(merge.coefficient, dtype=np.float32) @ updates
        whole = self.task.learner.load(saved)
        if merge.of == "model":
            for k in np.flatnonzero(merge.coefficient):
                model = self.models[int(paths.versions[k, 0])]
                whole = whole + model * float(merge.coefficient[k])
        self.version += 1
        self._advance(self.version - 1, whole, merge.keep)

    def _advance(self, version: int, change: Model, keep: float) -> None:
        """The model after a version. ``change`` is nobody else's: it may become the model."""
        model = self.models[version]
        if keep != 1.0:
            change = change - model * (1.0 - keep)
        if self.task.server is None:
            change += model
        else:
            step, self.moments = self.task.server.step(change, self.moments)
            change = model + step
        self.models[version + 1] = change

    def _walked(self, model: Model, walks: Walks, coefficient: Weights) -> Model:
        """The sum of coefficient times update, of walks from one model."""
        learner, data = self.task.learner, self.task.data
        with np.errstate(all="ignore"):
            if walks.rate.shape[1] > 1:
                return learner.update(model, data, walks, coefficient)
            # One step each from one model: a single weighted loss over all batches.
            weight = walks.weight[:, 0] * (walks.rate * -coefficient[:, None])
            return learner.gradient(model, data, walks.rows.ravel(), weight.ravel())

    def updates(self, paths: Paths) -> NDArray[np.float32]:
        """Each path's own update, for a policy that needs to see them."""
        self.catch_up()
        rows: dict[int, NDArray[np.float32]] = {}
        for version, works, some in self._alike(paths):
            walks, learner = self._walks(paths.take(some), works), self.task.learner
            found = learner.updates(self.models[version], self.task.data, walks)
            rows |= {int(k): learner.save(row) for k, row in zip(some, found, strict=True)}
        if not rows:
            return np.empty((0, len(self.task.learner.save(self.model))), dtype=np.float32)
        return np.stack([rows[k] for k in range(len(paths))])

    def losses(self, paths: Paths) -> Floats:
        """The mean loss on the first batch of each path, before any step."""
        self.catch_up()
        found = np.empty(len(paths))
        for version, works, some in self._alike(paths):
            walks = self._walks(paths.take(some), works)
            rows, weight = walks.rows[:, 0], walks.weight[:, 0]
            loss = self.task.learner.losses(self.models[version], self.task.data, rows.ravel())
            found[some] = (loss.reshape(rows.shape) * weight).sum(axis=1) / weight.sum(axis=1)
        return found

    def _alike(self, paths: Paths) -> list[tuple[int, tuple[Work, ...], Indices]]:
        """Which paths can be walked side by side: those from one version with the same work.

        One kind of work for all their jobs, however many these are, or one for each.
        """
        if not len(paths):
            return []
        everyone = np.arange(len(paths))
        works = {self.works[r] for r in set(paths.rounds.ravel().tolist()) if r >= 0}
        first = paths.versions[:, 0]
        if len(works) == 1 and (first == first[0]).all():
            return [(int(first[0]), tuple(works), everyone)]
        kinds: dict[tuple[int, tuple[Work, ...]], list[int]] = {}
        for k in everyone.tolist():
            each = tuple(self.works[round_] for round_, _ in paths.chain(k))
            kind = (int(first[k]), each if len(set(each)) > 1 else each[:1])
            kinds.setdefault(kind, []).append(k)
        return [(version, each, np.array(some)) for (version, each), some in kinds.items()]

    def _walks(self, paths: Paths, works: tuple[Work, ...]) -> Walks:
        rates = np.zeros(paths.rounds.shape)
        columns = (paths.rounds.ravel().tolist(), paths.versions.ravel().tolist())
        jobs = set(zip(*columns, strict=True))
        for round_, version in jobs:
            if len(jobs) == 1:
                rates[:] = self.task.rate_at(round_, version)
            elif round_ >= 0:
                same = (paths.rounds == round_) & (paths.versions == version)
                rates[same] = self.task.rate_at(round_, version)
        if len(works) == 1:
            return self.batches.walks(paths.client, paths.rounds, rates, works[0])
        parts = [
            self.batches.walks(
                paths.client, paths.rounds[:, at : at + 1], rates[:, at : at + 1], work
            )
            for at, work in enumerate(works)
        ]
        return reduce(Walks.then, parts)

    def keep(self, jobs: Jobs) -> None:
        """Remember the local models that jobs have reported, as the way to them."""
        self.chains |= dict(zip(jobs.client.tolist(), self.chains_of(jobs), strict=True))

    def forget(self, running: Jobs, keeps: Mask) -> None:
        """Let go of all that nothing refers to: chains, versions of the model, works of rounds."""
        if self.chains:
            self.chains = {k: chain for k, chain in self.chains.items() if keeps[k]}
        going_on = set(running.client[running.local].tolist())
        self.begun = {k: chain for k, chain in self.begun.items() if k in going_on}
        chains = [*self.chains.values(), *self.begun.values()]
        rounds = {round_ for chain in chains for round_, _ in chain}
        rounds |= set(running.round.tolist())
        self.works = {r: w for r, w in self.works.items() if r in rounds}
        needed = {self.version, *running.version.tolist(), *(chain[0][1] for chain in chains)}
        if self.line:
            self.line[-1].needed = needed
        else:
            self._let_go(needed)
        if self._waiting >= AHEAD:
            self.catch_up()

    def _let_go(self, needed: set[int]) -> None:
        self.models = {v: m for v, m in self.models.items() if v in needed}

    def score(self) -> Score:
        """How good the global model is on the task's test examples."""
        test = self.task.held if self.task.test is None else self.task.test
        with np.errstate(all="ignore"):  # a model that diverges is its loss's business to show
            return self.task.learner.score(self.model, test)
