"""Two levels: a cloud's clients are clusters, and each cluster runs rounds with its own clients.

The cloud and every cluster have their own ``Run``. A job of a cluster starts from the cloud's
model, and is played when it starts: the cluster makes updates by its own policy and on its own
clock. It reports its model minus the cloud's. Its response time is the time that has passed on its
clock, plus the time of its link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.controllers import Controller
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
from cafe.errors import check_progress
from cafe.federation import Federation
from cafe.keywords import explain_keywords
from cafe.latency import Latency
from cafe.randomness import check_seed
from cafe.rounds.history import History
from cafe.rounds.policy import Policy
from cafe.task import Task


@dataclass(frozen=True, eq=False)
class Levels:
    """The result of a run with two levels.

    Attributes:
        cloud: the history of the cloud. Its clients are the clusters: its wastes and ages are in
            the time of clusters, and its downloads and bytes are those of the links.
        clusters: the history of each cluster, in the time of clients.
        discarded: client time in updates of clusters whose report the cloud discarded. In the
            histories of the clusters this time counts as used.
    """

    cloud: History
    clusters: tuple[History, ...]
    discarded: float

    @property
    def model(self) -> NDArray[np.float32] | None:
        """The cloud's parameters after the last round; None without a task."""
        return self.cloud.model

    @property
    def client_seconds(self) -> float:
        """Client time spent in all clusters, used or not."""
        return sum(cluster.client_seconds for cluster in self.clusters)

    @property
    def waste(self) -> float:
        """Client time wasted by clusters, as the paper charges it, or by the cloud."""
        return sum(cluster.waste for cluster in self.clusters) + self.discarded

    @property
    def processing_waste(self) -> float:
        """Client time wasted by clusters, as it was really spent, or by the cloud."""
        return sum(cluster.processing_waste for cluster in self.clusters) + self.discarded

    @property
    def downloads(self) -> int:
        """The number of times that a model was sent, to clusters and to clients."""
        return sum(run.downloads for run in (self.cloud, *self.clusters))

    @property
    def bytes_down(self) -> float:
        """Bytes sent to clusters and to clients; 0 without a task."""
        return sum(run.bytes_down for run in (self.cloud, *self.clusters))

    @property
    def bytes_up(self) -> float:
        """Bytes in the reports of clients and of clusters, used or not; 0 without a task."""
        return sum(run.bytes_up for run in (self.cloud, *self.clusters))

    def __repr__(self) -> str:
        learned = "" if self.cloud.accuracy is None else f", accuracy {self.cloud.accuracy:.4f}"
        return (
            f"Levels({self.cloud.policy} over {len(self.clusters)} clusters: "
            f"{self.cloud.rounds} rounds, {self.cloud.updates} updates{learned})"
        )


@explain_keywords
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
    """Simulate a cloud whose clients are clusters, and train a model if there is a task.

    ``Work(steps=...)`` of the cloud's policy is the number of updates that a cluster makes before
    it reports; by default one. With ``Work(scaled=True)``, the default, a cluster's report is
    multiplied by the number of clusters times its share of all examples, so that all examples have
    the same weight in the mean of all reports. The cloud applies the task's server optimiser;
    clusters add up updates.

    A cluster always finishes its job. If the cloud discards its report and invites it again while
    it still works, the next job begins when it has finished.

    Args:
        clusters: each with its clients and its policy.
        cloud: how the cloud runs its rounds. Its clients are the clusters.
        task: what is learned. Clients are numbered through all clusters: the shards of the first
            cluster's clients come first. Without a task no model is trained.
        link: the time that the model takes between the cloud and a cluster, both ways together: a
            latency for all links or with an entry for each, or a federation with one client per
            cluster. None: no time.
        rounds: the maximum number of rounds of the cloud, including failed ones.
        updates: the maximum number of successful rounds of the cloud.
        time: stop after the first round of the cloud that closes at this virtual time or later.
        seed: the seed of all random numbers. Each cluster has its own seed, derived from it.
        crash: the probability that a client which has begun a job never reports.
        evaluate_every: the number of rounds of the cloud between two evaluations of its model. By
            default, the model is evaluated about 100 times.
        patience: a cluster gives up after this many failed rounds in a row, and reports the updates
            that it has made; if it has made none, its job is lost. After this many failed rounds of
            the cloud in a row the run ends with an error.
        progress: called after each round of the cloud with the share of the run that is done.

    Example:
        >>> import cafe
        >>> phones = cafe.Federation(clients=10, latency=cafe.Exponential(rate=1.0))
        >>> cluster = cafe.Cluster(phones, cafe.policies.mcu(quorum=2, deadline=0.5))
        >>> cloud = cafe.policies.mcu(quorum=2, deadline=3.0)
        >>> levels = cafe.two_levels([cluster] * 3, cloud, rounds=5)
        >>> levels.cloud.updates, len(levels.clusters)
        (5, 3)
    """
    check_progress(progress)
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
