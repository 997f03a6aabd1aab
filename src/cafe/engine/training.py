"""The data plane of a run: models, and the updates that decisions ask for, computed late.

Nothing is computed when a job starts or reports. A job leaves only its address (client, round,
version); when a merge gives it a coefficient, its batches and gradients are worked out, all of an
update's jobs together. Jobs that are thrown away cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.engine.batches import Batches
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.base import Model, Score, Walks
from cafe.rounds.jobs import Jobs, Whole, Work
from cafe.rounds.policy import Merge
from cafe.task import Task


@dataclass(frozen=True)
class Chain:
    """A client's local model, as the jobs that lead to it.

    Attributes:
        version: of the global model that it began from.
        jobs: the round and the global model's version when each job began.
    """

    version: int
    jobs: tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Training:
    """The global model, the versions still needed, and the clients' local models as recipes.

    Attributes:
        task: what is learned.
        seed: of the batches and the start.
        models: the model by version, for those that a job may still begin from or refer to.
        chains: the local models that clients keep.
        works: how much work the jobs of a round do.
        moments: what the server optimiser remembers.
    """

    task: Task
    seed: int
    models: dict[int, Model]
    version: int = 0
    chains: dict[int, Chain] = field(default_factory=dict)
    works: dict[int, Work] = field(default_factory=dict)
    moments: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.batches = Batches(self.task, self.seed)

    @property
    def model(self) -> Model:
        """The global model."""
        return self.models[self.version]

    def chain(self, client: int, version: int, round_: int, local: bool) -> Chain:
        """What a job amounts to: the client's local model gone on by a round, or a new one."""
        if local:
            before = self.chains[client]
            return Chain(before.version, (*before.jobs, (round_, version)))
        return Chain(version, ((round_, version),))

    def chains_of(self, jobs: Jobs, held: Indices) -> list[Chain]:
        """The chains of jobs that reported, then of clients whose kept reports are held."""
        columns = (jobs.client, jobs.version, jobs.round, jobs.local)
        new = zip(*(column.tolist() for column in columns), strict=True)
        return [*(self.chain(*job) for job in new), *(self.chains[k] for k in held.tolist())]

    def merge(self, clients: Indices, chains: list[Chain], merge: Merge) -> None:
        """Move the global model by what the reports amount to, times their coefficients."""
        used = np.flatnonzero(merge.coefficient)
        whole: Model = None
        for version, some in _by_version(chains, used):
            coefficient = merge.coefficient[some]
            part = self._update(clients[some], [chains[k] for k in some], version, coefficient)
            if merge.of == "model":
                part = part + self.models[version] * float(coefficient.sum())
            whole = part if whole is None else whole + part
        self._advance(whole, merge.keep)

    def merge_given(self, updates: NDArray[np.float32], merge: Merge, versions: Whole) -> None:
        """The same with updates that are known already."""
        saved = np.asarray(merge.coefficient, dtype=np.float32) @ updates
        whole = self.task.learner.load(saved)
        if merge.of == "model":
            for k in np.flatnonzero(merge.coefficient):
                whole = whole + self.models[int(versions[k])] * float(merge.coefficient[k])
        self._advance(whole, merge.keep)

    def _advance(self, change: Model, keep: float) -> None:
        change = change if keep == 1.0 else change - self.model * (1.0 - keep)
        if self.task.server is not None:
            change, self.moments = self.task.server.step(change, self.moments)
        moved = self.model + change
        self.version += 1
        self.models[self.version] = moved

    def _update(
        self, clients: Indices, chains: list[Chain], version: int, coefficient: Floats
    ) -> Model:
        """The sum of coefficient times update, of chains that begin from one version."""
        learner, data, model = self.task.learner, self.task.data, self.models[version]
        total: Model = None
        for works, some in self._by_work(chains):
            walks = self._walks(clients[some], [chains[k] for k in some], works)
            share = coefficient[some].astype(np.float32)
            if walks.rate.shape[1] == 1:
                # One step each from one model: a single weighted loss over all batches.
                weight = walks.weight[:, 0] * (walks.rate * -share[:, None])
                part = learner.gradient(model, data, walks.rows.ravel(), weight.ravel())
            else:
                part = learner.update(model, data, walks, share)
            total = part if total is None else total + part
        return total

    def updates(self, clients: Indices, chains: list[Chain]) -> NDArray[np.float32]:
        """Each chain's own update, for a policy that needs to see them."""
        rows: dict[int, NDArray[np.float32]] = {}
        for version, same in _by_version(chains, np.arange(len(chains))):
            for works, some in self._by_work([chains[k] for k in same]):
                index = same[some]
                walks = self._walks(clients[index], [chains[k] for k in index], works)
                learner = self.task.learner
                found = learner.updates(self.models[version], self.task.data, walks)
                rows |= {int(k): learner.save(row) for k, row in zip(index, found, strict=True)}
        return np.stack([rows[k] for k in range(len(chains))])

    def losses(self, clients: Indices, chains: list[Chain]) -> Floats:
        """The mean loss on the first batch of each chain, before any step."""
        found = np.empty(len(chains))
        for version, same in _by_version(chains, np.arange(len(chains))):
            for works, some in self._by_work([chains[k] for k in same]):
                index = same[some]
                walks = self._walks(clients[index], [chains[k] for k in index], works)
                rows, weight = walks.rows[:, 0], walks.weight[:, 0]
                loss = self.task.learner.losses(
                    self.models[version], self.task.data, rows.ravel()
                ).reshape(rows.shape)
                found[index] = (loss * weight).sum(axis=1) / weight.sum(axis=1)
        return found

    def _by_work(self, chains: list[Chain]) -> list[tuple[tuple[Work, ...], Indices]]:
        """The chains by the work of their jobs: one kind for all of them, or one for each."""
        works = [tuple(self.works[round_] for round_, _ in chain.jobs) for chain in chains]
        works = [w if len(set(w)) > 1 else w[:1] for w in works]
        kinds = list(dict.fromkeys(works))
        if len(kinds) == 1:
            return [(kinds[0], np.arange(len(chains)))]
        return [(k, np.flatnonzero([w == k for w in works])) for k in kinds]

    def _walks(self, clients: Indices, chains: list[Chain], works: tuple[Work, ...]) -> Walks:
        longest = max(len(chain.jobs) for chain in chains)
        rounds = np.full((len(chains), longest), -1, dtype=np.int64)
        rates = np.zeros(rounds.shape)
        rate = {job: self.task.rate_at(*job) for chain in chains for job in chain.jobs}
        for k, chain in enumerate(chains):
            rounds[k, : len(chain.jobs)] = [round_ for round_, _ in chain.jobs]
            rates[k, : len(chain.jobs)] = [rate[job] for job in chain.jobs]
        if len(works) == 1:
            return self.batches.walks(clients, rounds, rates, works[0])
        columns = [[at] for at in range(longest)]
        parts = [
            self.batches.walks(clients, rounds[:, at], rates[:, at], work)
            for at, work in zip(columns, works, strict=True)
        ]
        return reduce(Walks.then, parts)

    def forget(self, running: Jobs) -> None:
        """Let go of versions and works that nothing refers to any more."""
        if not len(running) and not self.chains:
            self.models = {self.version: self.model}
            self.works.clear()
            return
        rounds = {round_ for chain in self.chains.values() for round_, _ in chain.jobs}
        rounds |= set(running.round.tolist())
        versions = {chain.version for chain in self.chains.values()}
        versions |= {self.version, *running.version.tolist()}
        self.works = {r: w for r, w in self.works.items() if r in rounds}
        self.models = {v: m for v, m in self.models.items() if v in versions}

    def score(self) -> Score:
        """How good the global model is on the task's test examples."""
        test = self.task.held if self.task.test is None else self.task.test
        return self.task.learner.score(self.model, test)


def _by_version(chains: list[Chain], which: Indices) -> list[tuple[int, Indices]]:
    """Some of the chains, by the version that they begin from."""
    versions = np.array([chains[k].version for k in which])
    return [(int(v), which[versions == v]) for v in np.unique(versions)]
