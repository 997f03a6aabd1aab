"""Two levels: the clients of a cloud are clusters, and each cluster runs rounds of its own clients.

The cloud's run and every cluster's run are a ``Run``. A job of a cluster begins from the
cloud's model and is played when it starts: its cluster makes updates of its own, by its own policy
and on its own clock. What it reports is its model minus the cloud's, and how long it took is how
far its clock went, plus the time of its link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from sys import maxsize

import numpy as np
from numpy.typing import NDArray

from cafe.control import Controller
from cafe.data.examples import Shards
from cafe.engine.fates import JobFates
from cafe.engine.job_chains import JobChains
from cafe.engine.new_jobs import SimulatedJobs
from cafe.engine.run import Run
from cafe.engine.run_checks import check_hazards
from cafe.engine.simulate import run_rounds
from cafe.engine.stopping import StoppingRule
from cafe.errors import CafeError, InputError
from cafe.federation import Federation
from cafe.latency import Constant, Latency
from cafe.latency.base import TINY
from cafe.learn.base import Model
from cafe.randomness import check_seed, mix, stream_key
from cafe.rounds.history import History
from cafe.rounds.jobs import Invitation, Mask, Running
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import OPEN, Fate
from cafe.rounds.policy import Policy
from cafe.task import Task

_NO_TIME = Constant(TINY)  # as short as to change no time that it is added to


@dataclass(frozen=True, eq=False)
class Cluster:
    """Clients with a server of their own, at the edge of the network.

    Attributes:
        federation: the cluster's clients.
        policy: how the cluster runs its rounds, or a controller that chooses a policy for each.
    """

    federation: Federation
    policy: Policy | Controller


@dataclass(frozen=True, eq=False)
class Levels:
    """What a run of two levels did and cost.

    Attributes:
        cloud: the cloud's run. Its clients are the clusters: its wastes and ages are in the time
            of clusters, and its downloads and bytes are those of the links.
        clusters: the run of each cluster, in the time of clients.
        discarded: client time that went into the updates of clusters whose report the cloud
            discarded. The clusters' own books call it used.
    """

    cloud: History
    clusters: tuple[History, ...]
    discarded: float

    @property
    def model(self) -> NDArray[np.float32] | None:
        """The cloud's parameters in the end; None without a task."""
        return self.cloud.model

    @property
    def client_seconds(self) -> float:
        """Client time in all clusters, used or not."""
        return sum(cluster.client_seconds for cluster in self.clusters)

    @property
    def waste(self) -> float:
        """Client time thrown away by clusters, as the paper charges it, or by the cloud."""
        return sum(cluster.waste for cluster in self.clusters) + self.discarded

    @property
    def processing_waste(self) -> float:
        """Client time thrown away by clusters, as it was really spent, or by the cloud."""
        return sum(cluster.processing_waste for cluster in self.clusters) + self.discarded

    @property
    def downloads(self) -> int:
        """How many times a model was sent, to clusters and to clients."""
        return sum(run.downloads for run in (self.cloud, *self.clusters))

    @property
    def bytes_down(self) -> float:
        """Bytes sent to clusters and to clients; 0 without a task."""
        return sum(run.bytes_down for run in (self.cloud, *self.clusters))

    @property
    def bytes_up(self) -> float:
        """Bytes that came with reports of clients and of clusters, used or not."""
        return sum(run.bytes_up for run in (self.cloud, *self.clusters))

    def __repr__(self) -> str:
        learned = "" if self.cloud.accuracy is None else f", accuracy {self.cloud.accuracy:.4f}"
        return (
            f"Levels({self.cloud.policy} over {len(self.clusters)} clusters: "
            f"{self.cloud.rounds} rounds, {self.cloud.updates} updates{learned})"
        )


def two_levels(
    clusters: Sequence[Cluster],
    cloud: Policy | Controller,
    task: Task | None = None,
    *,
    link: Federation | Latency | None = None,
    rounds: int | None = None,
    updates: int | None = None,
    time: float | None = None,
    seed: int = 0,
    crash: float = 0.0,
    evaluate_every: int | None = None,
    patience: int = 1000,
    progress: Callable[[float], None] | None = None,
) -> Levels:
    """Play the rounds of a cloud over clusters in virtual time, and train if there is a task.

    ``Work(steps=...)`` of the cloud's policy is the number of updates that a cluster makes before
    it reports; one if the policy does not say. ``Work(scaled=True)``, the default, multiplies a
    cluster's report by the number of clusters times its share of all examples, so that the mean of
    all reports weighs each example alike. The task's server optimiser is the cloud's.

    A cluster finishes what it has begun. If the cloud discards its report, and invites it again
    while it is still at work, then the next job begins when it has finished.

    Args:
        clusters: each with its clients and its policy.
        cloud: how the cloud runs its rounds, with the clusters for clients.
        task: what is learned. Clients are numbered through all clusters: the shards of the first
            cluster's clients come first. Without a task only the books are kept.
        link: the time that the model takes between the cloud and a cluster, both ways together: a
            latency for all links or with an entry for each, or a federation with a client for each
            cluster. None: no time.
        rounds: how many rounds of the cloud at most, failed ones included.
        updates: how many successful rounds of the cloud at most.
        time: stop after the first round of the cloud that closes at this virtual time or later.
        seed: of all that is random; each cluster has a seed of its own, made from it.
        crash: the probability that a job which a client has begun is never reported.
        evaluate_every: measure the cloud's model every so many rounds of the cloud; left out, it is
            measured about 100 times.
        patience: after so many failed rounds in a row a cluster gives up, and reports the updates
            that it has made. Without any, its job is lost. So many failed rounds of the cloud in a
            row end the run with an error.
        progress: called with the share that is done.
    """
    stopping = StoppingRule(rounds, updates, time)
    check_hazards(crash, patience)
    edges = build(clusters, cloud, task, link, check_seed(seed), crash, patience)
    for _ in run_rounds(edges.cloud, stopping, evaluate_every):
        if progress is not None:
            progress(min(stopping.share_done(edges.cloud), 1.0))
    return Levels(
        edges.cloud.history(),
        tuple(run.history() for run in edges.runs),
        edges.discarded,
    )


Job = tuple[int, int]  # the number of the cloud's invitation, and the cluster


class Edges:
    """The clusters of a cloud: plays their jobs, and has what they report.

    Args:
        cloud: the run whose clients are the clusters.
        runs: each cluster's run.
        patience: after so many failed rounds in a row a cluster gives up.
    """

    def __init__(self, cloud: Run, runs: Sequence[Run], patience: int) -> None:
        self.cloud, self.runs, self.patience = cloud, runs, patience
        self.models: dict[Job, Model] = {}  # where jobs have ended
        self.used: dict[Job, float] = {}  # client time in the updates of jobs without a fate yet
        self.kept: dict[int, list[Job]] = {}  # by cluster: jobs whose report is kept unused
        self.discarded = 0.0

    def play(self, ledger: Ledger, invitation: Invitation, began: Mask) -> SimulatedJobs:
        """Play the jobs that an invitation of the cloud starts, one cluster after the other."""
        clusters, work = invitation.clients, invitation.work
        if work.epochs is not None or work.seconds is not None or work.prox:
            raise InputError(
                "A cluster's work is a number of updates of its own, Work(steps=...). Got "
                f"{work} from the cloud's policy: epochs, seconds and prox belong in the policies "
                "of the clusters."
            )
        _check_needs(self.cloud.policy)
        if self.cloud.training is not None and self.cloud.training.vectors.used:
            raise InputError(
                f"The policy {self.cloud.policy.name} answered offset, common or frozen in merge, "
                "and the cloud's clients are clusters, which take no gradient steps. Choose "
                "another policy for the cloud, and that one for the clusters."
            )
        end = np.full(len(clusters), ledger.now)
        steps = np.full(len(clusters), work.steps, dtype=np.int64)
        if invitation.amount is not None:
            steps[:] = invitation.amount
        local = np.zeros(len(clusters), dtype=bool)
        if invitation.local is not None:
            local = invitation.local & ledger.local[clusters]
        for row in np.flatnonzero(began).tolist():
            job = (ledger.invitations, int(clusters[row]))
            start = self._start(job[1], bool(local[row]))
            end[row], steps[row] = self._job(job, start, ledger.now, int(steps[row]))
        return SimulatedJobs(end, steps)

    def _start(self, cluster: int, local: bool) -> Model:
        """The model that a cluster begins from: the cloud's, or its own that it has kept."""
        training = self.cloud.training
        if training is None:
            return None
        if local:
            return self.models[training.chains[cluster][-1].invitation, cluster]
        return training.model

    def _job(self, job: Job, start: Model, now: float, steps: int) -> tuple[float, int]:
        """Play a cluster's rounds until it has made its updates: when, and how many."""
        run = self.runs[job[1]]
        run.ledger.now = max(run.ledger.now, now)
        run.set_model(start)
        first, made, failed = len(run.outcomes), 0, 0
        while made < steps and failed < self.patience:
            try:
                succeeded = run.step().succeeded
            except CafeError as error:
                raise type(error)(f"Cluster {job[1]}: {error}") from error
            made, failed = (made + 1, 0) if succeeded else (made, failed + 1)
        if run.training is not None:
            self.models[job] = run.training.model
        played = run.outcomes[first:]
        self.used[job] = sum(outcome.work - outcome.processing_waste for outcome in played)
        return run.ledger.now, made

    def updates(self, paths: JobChains) -> NDArray[np.float32]:
        """What clusters have reported: where each has ended, minus the cloud's model."""
        training = self.cloud.training
        assert training is not None
        task, save = training.task, training.task.learner.save
        found = np.empty((len(paths), len(save(training.model))), dtype=np.float32)
        for row, cluster in enumerate(paths.client.tolist()):
            chain = paths.chain(row)
            last = chain[-1].invitation
            change = self.models[last, cluster] - training.models[chain[0].version]
            scaled = training.calls[last].work.scaled
            found[row] = save(change) * np.float32(task.scale[cluster] if scaled else 1.0)
        return found

    def settle(self, jobs: Running, fates: JobFates) -> None:
        """Note which jobs a round of the cloud has discarded, and forget what is over."""
        for clusters, earlier in fates.earlier:
            for cluster, fate in zip(clusters.tolist(), earlier.tolist(), strict=True):
                for job in self.kept.pop(cluster, []):
                    self._end(job, fate)
        for row, fate in enumerate(fates.by_job.tolist()):
            if fate != OPEN:
                self._end((int(jobs.invitation[row]), int(jobs.client[row])), fate)
        for row in fates.kept.tolist():
            if fates.by_job[row] == OPEN:
                cluster = int(jobs.client[row])
                self.kept.setdefault(cluster, []).append((int(jobs.invitation[row]), cluster))
        training = self.cloud.training
        if training is not None:
            self.models = {job: m for job, m in self.models.items() if job[0] in training.calls}

    def _end(self, job: Job, fate: int) -> None:
        used = self.used.pop(job, 0.0)  # a cluster that was absent has used nothing
        if fate >= Fate.OVER:
            self.discarded += used


def build(
    clusters: Sequence[Cluster],
    cloud: Policy | Controller,
    task: Task | None,
    link: Federation | Latency | None,
    seed: int,
    crash: float,
    patience: int,
) -> Edges:
    """The runs of both levels, before the first round."""
    _check(clusters)
    counts = [cluster.federation.clients for cluster in clusters]
    first = np.cumsum([0, *counts])
    if task is not None and task.clients != first[-1]:
        raise InputError(
            f"The task has data for {task.clients} clients and the clusters have {first[-1]} in "
            "all: each client needs its own examples, and no others."
        )
    whole = None if task is None else _pooled(task, first)
    run = Run(_links(link, clusters), cloud, whole, seed=seed, patience=patience)
    runs = []
    for k, cluster in enumerate(clusters):
        part = None if task is None else _part(task, int(first[k]), int(first[k + 1]))
        try:
            runs.append(
                Run(
                    cluster.federation,
                    cluster.policy,
                    part,
                    seed=cluster_seed(seed, k),
                    crash=crash,
                    patience=maxsize,  # a cluster that gives up ends its job, not the run
                )
            )
        except InputError as error:
            raise InputError(f"Cluster {k}: {error}") from error
    edges = Edges(run, runs, patience)
    run.starter.play, run.watch = edges.play, edges.settle
    if run.training is not None:
        run.training.reported = edges.updates
    return edges


def cluster_seed(seed: int, cluster: int) -> int:
    """The seed of a cluster's own run."""
    return int(mix(stream_key(seed, "cluster"), cluster))


def _check(clusters: Sequence[Cluster]) -> None:
    if not isinstance(clusters, Sequence) or not clusters:
        raise InputError(f"At least one cluster is needed, in a list. Got {clusters!r}.")
    for k, cluster in enumerate(clusters):
        if not isinstance(cluster, Cluster) or not isinstance(cluster.federation, Federation):
            raise InputError(
                f"Clusters are made by cafe.Cluster(federation, policy). Got {cluster!r} as "
                f"number {k}."
            )


def _check_needs(cloud: Policy) -> None:
    unmet = sorted(cloud.needs & {"losses", "rms losses", "offsets"})
    if unmet:
        raise InputError(
            f"The policy {cloud.name} needs {' and '.join(unmet)} of clients, and the cloud's "
            "clients are clusters, which report a model alone. Choose another policy for the cloud."
        )


def _links(link: Federation | Latency | None, clusters: Sequence[Cluster]) -> Federation:
    """The cloud's federation: a client for each cluster, who takes the time of its link."""
    number = len(clusters)
    if link is None or isinstance(link, Latency):
        link = Federation(number, _NO_TIME if link is None else link)
    if not isinstance(link, Federation) or link.clients != number:
        raise InputError(
            f"link must be a latency, or a federation with a client for each of the {number} "
            f"clusters. Got {link!r}."
        )
    if link.has_step_time:
        raise InputError(
            "A link has no per_step: how long an update of a cluster takes is found by playing it. "
            "Give per_step to the federations of the clusters."
        )
    held = [int(np.broadcast_to(c.federation.examples, c.federation.clients).sum())
            for c in clusters]  # fmt: skip
    return replace(link, examples=np.array(held, dtype=np.int64))


def _pooled(task: Task, first: NDArray[np.int64]) -> Task:
    """The task of the cloud: a cluster holds what its clients hold."""
    return replace(task, shards=Shards(task.shards.rows, task.shards.starts[first]))


def _part(task: Task, first: int, end: int) -> Task:
    """The task of the clients from ``first`` to before ``end``. Its server adds updates up."""
    starts = task.shards.starts[first : end + 1]
    rows = task.shards.rows[starts[0] : starts[-1]]
    return replace(task, shards=Shards(rows, starts - starts[0]), server=None)
