"""The run of a hierarchy: a run with two levels whose books are in terms of clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cafe.controllers import Controller
from cafe.data.examples import Shards
from cafe.engine.client_accuracy import accuracy_by_client
from cafe.engine.client_books import ClientBooks
from cafe.engine.clusters import Cluster, cloud_task, cluster_runs, link_federation
from cafe.engine.edge_servers import EdgeServers
from cafe.engine.run import Run
from cafe.engine.run_checks import check_setting
from cafe.engine.training import Training
from cafe.errors import InputError, check_flag, check_type
from cafe.federation import Federation, Indices
from cafe.latency.base import Floats
from cafe.learn.base import Score
from cafe.randomness import check_seed
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.history import Curve, History, outcome_columns
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.task import Task


class HierarchyRun:
    """A simulated run of a hierarchy. :meth:`step` plays one round of the cloud.

    It has the same methods as :class:`cafe.engine.Run`, but cannot be saved. Times, wastes, ages
    and fates are those of clients; see ``cafe.engine.client_books``.

    Args:
        federation: the clients.
        hierarchy: how they form clusters, and how both levels run their rounds.
        task: what is learned; without a task no model is trained.
        seed: the seed of all random numbers.
        crash: the probability that a client which has begun a job never reports.
        patience: a cluster gives up after this many failed rounds in a row. After this many failed
            rounds of the cloud in a row, :meth:`step` raises an error.
        secure_aggregation: raise an error if edge servers need single updates or losses. The cloud
            sees only the sums of clusters in any case.

    Example:
        >>> import cafe
        >>> from cafe.engine.hierarchy_run import HierarchyRun
        >>> federation = cafe.Federation(clients=20, latency=cafe.Exponential(rate=1.0))
        >>> run = HierarchyRun(federation, cafe.policies.hierarchical(clusters=4, goal=2), seed=1)
        >>> run.step().succeeded
        True
    """

    def __init__(
        self,
        federation: Federation,
        hierarchy: Hierarchy,
        task: Task | None = None,
        *,
        seed: int = 0,
        crash: float = 0.0,
        patience: int = 1000,
        secure_aggregation: bool = False,
    ) -> None:
        check_type("The hierarchy", hierarchy, Hierarchy, "a cafe.rounds.Hierarchy")
        check_setting(federation, task, crash, patience)
        check_flag("secure_aggregation", secure_aggregation)
        self.hierarchy, self.federation, self.seed = hierarchy, federation, check_seed(seed)
        self.task = task
        self._by_client: tuple[int, Floats | None] | None = None  # of this version
        hierarchy.check(federation, crash)
        found = hierarchy.clusters(federation)
        groups = [*found.values()]
        clusters = [Cluster(federation.take(each), hierarchy.edge) for each in groups]
        ordered = None if task is None else _reorder(task, np.concatenate(groups))
        links = link_federation(hierarchy.links(np.array([*found])), clusters)
        whole = cloud_task(ordered, clusters)
        self.cloud = Run(links, hierarchy.cloud, whole, seed=self.seed, patience=patience)
        runs = cluster_runs(clusters, ordered, self.seed, crash, secure_aggregation)
        self.books = ClientBooks(groups)
        self.edges = EdgeServers(self.cloud, runs, patience, self.books)

    @property
    def ledger(self) -> Ledger:
        """What the cloud knows; its clients are the clusters."""
        return self.cloud.ledger

    @property
    def training(self) -> Training | None:
        """The training of the cloud's model; None without a task."""
        return self.cloud.training

    @property
    def outcomes(self) -> list[Outcome]:
        """The rounds of the cloud so far, in terms of clients."""
        return self.books.outcomes

    @property
    def scores(self) -> list[tuple[int, Score]]:
        """The evaluations of the model so far, each with the number of rounds before it."""
        return self.cloud.scores

    @property
    def evaluated_on(self) -> int | None:
        """The number of test examples of an evaluation; None: all."""
        return self.cloud.evaluated_on

    def step(self) -> Outcome:
        """Play one round of the cloud, and return its outcome in terms of clients."""
        outcome = self.cloud.step()
        if outcome.reused:
            raise InputError(
                f"The cloud of {self.hierarchy.name} has used a report of a cluster twice, and the "
                "reports of its clients cannot be counted then. Do not hold used reports in carry, "
                "or use cafe.two_levels, which counts clusters."
            )
        return self.books.close(outcome)

    def why_failing(self) -> str:
        """A sentence: how many rounds in a row have failed, and the reason if it is known."""
        return self.cloud.why_failing()

    def evaluate(self) -> Score:
        """Evaluate the model now, and add the score to the history."""
        return self.cloud.evaluate()

    def evaluate_clients(self) -> None:
        """Measure the accuracy of the model for each client, for the history."""
        if self.task is None or self.training is None:
            raise InputError("There is no model to evaluate: the run has no task.")
        by_class = self.cloud.accuracy_by_class()
        found = None if by_class is None else accuracy_by_client(self.task, by_class)
        self._by_client = (self.training.version, found)

    def history(self) -> History:
        """What has happened so far, in terms of clients.

        ``weight_by_client`` is NaN: the coefficients of two levels do not multiply if a level mixes
        models.
        """
        by_round, training = outcome_columns(self.outcomes), self.training
        known = self._by_client
        current = training is not None and known is not None and known[0] == training.version
        return History(
            policy=f"{self.hierarchy}",
            seed=self.seed,
            by_round=by_round,
            age_by_client=self.books.age_by_client(self.ledger.now),
            merged_by_client=self.books.merged.copy(),
            weight_by_client=np.full(self.federation.clients, np.nan),
            open_jobs=self.books.open_jobs,
            curve=None if training is None else Curve.of(self.scores, by_round),
            model=None if training is None else training.task.learner.save(training.model).copy(),
            accuracy_by_client=known[1] if known is not None and current else None,
        )


AnyRun = Run | HierarchyRun


def new_run(
    federation: Federation,
    policy: Policy | Controller | Hierarchy,
    task: Task | None = None,
    **options: Any,
) -> AnyRun:
    """The run of a policy, a controller or a hierarchy, before its first round.

    Args:
        federation: the clients.
        policy: how the server runs its rounds, or how the servers of two levels do.
        task: what is learned; without a task no model is trained.
        options: the keywords of :class:`cafe.engine.Run`.
    """
    if isinstance(policy, Hierarchy):
        return HierarchyRun(federation, policy, task, **options)
    return Run(federation, policy, task, **options)


def _reorder(task: Task, order: Indices) -> Task:
    """The task with the shards in the order of these clients."""
    shards = task.shards
    counts = shards.counts[order]
    starts = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    rows = shards.rows[np.repeat(shards.starts[order], counts) + within]
    return replace(task, shards=Shards(rows, starts))
