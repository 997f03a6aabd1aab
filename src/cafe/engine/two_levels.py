"""Two levels: the clients of a cloud are clusters, and each cluster runs rounds of its own clients.

The cloud's run and every cluster's run are a ``Run``. A job of a cluster begins from the
cloud's model and is played when it starts: its cluster makes updates of its own, by its own policy
and on its own clock. What it reports is its model minus the cloud's, and how long it took is how
far its clock went, plus the time of its link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.control import Controller
from cafe.engine.clusters import (
    Cluster,
    check_clusters,
    cloud_task,
    cluster_runs,
    link_federation,
)
from cafe.engine.edge_servers import EdgeServers
from cafe.engine.run import Run
from cafe.engine.run_checks import check_hazards
from cafe.engine.simulate import run_rounds
from cafe.engine.stopping import StoppingRule
from cafe.federation import Federation
from cafe.latency import Latency
from cafe.randomness import check_seed
from cafe.rounds.history import History
from cafe.rounds.policy import Policy
from cafe.task import Task


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
    check_clusters(clusters, task)
    federation, seed = link_federation(link, clusters), check_seed(seed)
    run = Run(federation, cloud, cloud_task(task, clusters), seed=seed, patience=patience)
    edges = EdgeServers(run, cluster_runs(clusters, task, seed, crash), patience)
    for _ in run_rounds(run, stopping, evaluate_every):
        if progress is not None:
            progress(min(stopping.share_done(run), 1.0))
    return Levels(run.history(), tuple(each.history() for each in edges.runs), edges.discarded)
