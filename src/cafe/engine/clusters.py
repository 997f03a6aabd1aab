"""Clusters of clients: how their runs, and the federation and task of the cloud, are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from sys import maxsize

import numpy as np

from cafe.controllers import Controller, as_controller
from cafe.data.examples import Shards
from cafe.engine.run import Run
from cafe.errors import InputError, check_type
from cafe.federation import Federation, Indices
from cafe.latency import Constant, Latency
from cafe.latency.base import TINY
from cafe.randomness import mix, stream_key
from cafe.rounds.policy import Policy
from cafe.task import Task

_NO_TIME = Constant(TINY)  # so short that adding it to a time does not change the time


@dataclass(frozen=True, eq=False)
class Cluster:
    """Clients with their own server, at the edge of the network.

    Attributes:
        federation: the cluster's clients.
        policy: how the cluster runs its rounds, or a controller that chooses a policy for each.

    Example:
        >>> import cafe
        >>> phones = cafe.Federation(clients=8, latency=cafe.Exponential(rate=1.0))
        >>> cafe.Cluster(phones, cafe.policies.mcu(quorum=2, deadline=1.0)).federation.clients
        8
    """

    federation: Federation
    policy: Policy | Controller

    def __post_init__(self) -> None:
        check_type("The federation of a cluster", self.federation, Federation, "a cafe.Federation")
        as_controller(self.policy)


def check_clusters(clusters: Sequence[Cluster], task: Task | None) -> None:
    """Raise an error unless there are clusters, and the task has data for all their clients."""
    if not isinstance(clusters, Sequence) or not clusters:
        raise InputError(f"At least one cluster is needed, in a list. Got {clusters!r}.")
    for k, cluster in enumerate(clusters):
        if not isinstance(cluster, Cluster) or not isinstance(cluster.federation, Federation):
            raise InputError(
                f"Clusters are made by cafe.Cluster(federation, policy). Got {cluster!r} as "
                f"number {k}."
            )
    if task is not None:
        check_type("The task", task, Task, "a cafe.Task, or None to train no model")
    total = int(_first_clients(clusters)[-1])
    if task is not None and task.clients != total:
        raise InputError(
            f"The task has data for {task.clients} clients, but the clusters have {total} in all: "
            "both must have the same number of clients."
        )


def link_federation(link: Federation | Latency | None, clusters: Sequence[Cluster]) -> Federation:
    """The cloud's federation: one client per cluster, with the response time of its link."""
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
            "A link has no per_step: how long an update of a cluster takes is found by simulating "
            "it. Give per_step to the federations of the clusters."
        )
    sizes = [
        int(np.broadcast_to(each.federation.examples, each.federation.clients).sum())
        for each in clusters
    ]
    return replace(link, examples=np.array(sizes, dtype=np.int64))


def cloud_task(task: Task | None, clusters: Sequence[Cluster]) -> Task | None:
    """The task of the cloud: each cluster holds the examples of all its clients."""
    if task is None:
        return None
    starts = task.shards.starts[_first_clients(clusters)]
    return replace(task, shards=Shards(task.shards.rows, starts))


def cluster_runs(
    clusters: Sequence[Cluster],
    task: Task | None,
    seed: int,
    crash: float,
    secure_aggregation: bool = False,
) -> list[Run]:
    """The run of each cluster, before its first round."""
    first = _first_clients(clusters).tolist()
    runs = []
    for k, cluster in enumerate(clusters):
        try:
            runs.append(
                Run(
                    cluster.federation,
                    cluster.policy,
                    None if task is None else _cluster_task(task, first[k], first[k + 1]),
                    seed=cluster_seed(seed, k),
                    crash=crash,
                    patience=maxsize,  # a cluster that gives up ends its job, not the run
                    secure_aggregation=secure_aggregation,
                )
            )
        except InputError as error:
            raise InputError(f"Cluster {k}: {error}") from error
    return runs


def cluster_seed(seed: int, cluster: int) -> int:
    """The seed of a cluster's own run."""
    return int(mix(stream_key(seed, "cluster"), cluster))


def _first_clients(clusters: Sequence[Cluster]) -> Indices:
    """The number of each cluster's first client, and the number of all clients."""
    return np.cumsum([0, *(cluster.federation.clients for cluster in clusters)])


def _cluster_task(task: Task, first: int, end: int) -> Task:
    """The task of the clients from ``first`` to before ``end``. It has no server optimiser."""
    starts = task.shards.starts[first : end + 1]
    rows = task.shards.rows[starts[0] : starts[-1]]
    return replace(task, shards=Shards(rows, starts - starts[0]), server=None)
