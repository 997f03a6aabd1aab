"""Clusters that do the jobs of a cloud, and how their reports are used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import two_levels
from cafe.data.examples import Examples
from cafe.decisions import Mean
from cafe.engine import Run
from cafe.engine.clusters import cluster_runs, link_federation
from cafe.engine.edge_servers import EdgeServers
from cafe.engine.snapshot import save
from cafe.errors import InputError
from cafe.policies import agu, mcu
from cafe.rounds import LOCAL, Carried, Invitation, Ledger, Merge, Policy, Reports
from tests.support.two_levels import everyone, model, points, slow_and_fast


def test_late_cluster_finishes_its_job_and_its_work_is_discarded() -> None:
    """Its jobs last from 0 to 2, 2 to 4 and 4 to 6; the cloud closes a round every 1.75."""
    half = cafe.Constant(0.5)
    cloud = mcu(quorum=1, deadline=1.75)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=half, rounds=3)
    assert levels.cloud.by_round["closed"].tolist() == [1.75, 3.5, 5.25]
    assert levels.clusters[0].by_round["opened"].tolist() == [0.0, 1.75, 3.5]
    assert levels.clusters[1].by_round["opened"].tolist() == [0.0, 2.0, 4.0]
    assert levels.cloud.fates["late"] == 3
    assert levels.cloud.waste == 3 * 1.75  # of clusters
    assert levels.clusters[1].waste == 0
    assert levels.discarded == levels.waste == levels.processing_waste == 6.0  # of clients
    assert model(levels) == 0.875  # 0.5, 0.75, 0.875: towards 1 alone


def test_late_cluster_may_keep_running() -> None:
    """It reports 1.5, from 0, when the model is at 0.5 and the other cluster reports 0.25."""
    half = cafe.Constant(0.5)
    cloud = mcu(quorum=1, deadline=1.75, late="keep")
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=half, rounds=2)
    assert model(levels) == 0.5 + (0.25 + 1.5) / 2
    assert levels.cloud.fates["stale"] == 1
    assert levels.discarded == 0


def test_cluster_continues_from_its_own_model() -> None:
    """The first round fails. Then one cluster reports 0.75, reached from 0.5, the other 1.5."""

    def cloud(ledger: Ledger, seen: Any) -> Policy:
        return agu(quorum=2, deadline=2.0 if ledger.round == 0 else 3.0)

    half = cafe.Constant(0.5)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=half, rounds=2)
    assert levels.cloud.by_round["succeeded"].tolist() == [False, True]
    assert model(levels) == (0.75 + 1.5) / 2
    assert levels.discarded == 2.0  # the second cluster's first job


@pytest.mark.parametrize(("pool", "reached", "discarded"), [("round", 1.5, 1.0), ("union", 1.0, 0)])
def test_kept_report_counts_as_discarded_when_it_is_dropped(
    pool: Any, reached: float, discarded: float
) -> None:
    """The first cluster reports 0.5 in a round that fails, the second 1.5 in the next."""

    def one_by_one(ledger: Ledger, rng: Any) -> Invitation:
        return Invitation(np.array([ledger.round]))

    def cloud(ledger: Ledger, seen: Any) -> Policy:
        policy = agu(quorum=2 - ledger.round, deadline=3.0, pool=pool)
        return replace(policy, invite=one_by_one)

    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), rounds=2)
    assert levels.cloud.by_round["succeeded"].tolist() == [False, True]
    assert model(levels) == reached
    assert levels.discarded == discarded


def test_cluster_may_always_continue_from_its_own_model() -> None:
    """0.5, then 0.75, both reported as changes of the first model, 0."""
    cloud = replace(everyone(), carry=lambda ledger, closed: Carried(LOCAL, kept=True))
    levels = two_levels([slow_and_fast()[0]], cloud, points([1]), rounds=2)
    assert model(levels) == 0.5 + 0.75


def test_cloud_policy_may_use_updates() -> None:
    def largest(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        return Merge((reports.updates[:, 0] == reports.updates.max()).astype(float))

    cloud = replace(everyone(), merge=largest, needs=frozenset({"updates", "labels"}))
    task = points([1, 3])
    task = replace(task, data=Examples(task.data.x, np.array([0, 1])))
    levels = two_levels(slow_and_fast(), cloud, task, rounds=1)
    assert model(levels) == 1.5
    assert levels.discarded == 1.0  # of the other cluster, whose report had no weight


# ---------------------------------------------------------------- lost jobs


def test_job_of_a_cluster_that_gives_up_is_lost() -> None:
    """Its deadline is too short for all clients: after 3 rounds, at 3, its job is lost."""
    clusters = slow_and_fast()
    clusters[1] = replace(clusters[1], policy=mcu(quorum=1, deadline=1.0))
    cloud = mcu(quorum=1, deadline=5.0)
    levels = two_levels(clusters, cloud, points([1, 3]), rounds=2, patience=3)
    assert levels.cloud.fates["crashed"] == 2
    assert levels.cloud.processing_waste == 6.0
    assert levels.clusters[1].rounds == 6
    assert levels.discarded == 0  # its own books contain the waste
    assert levels.waste == 6.0
    assert model(levels) == 0.75


def test_cluster_that_gives_up_reports_its_finished_updates() -> None:
    def once(ledger: Ledger, seen: Any) -> Policy:
        return mcu(quorum=1, deadline=2.0 if ledger.version % 2 else 1.0)

    seen = []

    def noting(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(reports.steps.tolist())
        return Mean()(ledger, reports)

    clusters = slow_and_fast()
    clusters[1] = replace(clusters[1], policy=once)
    cloud = replace(everyone(2), merge=noting)
    levels = two_levels(clusters, cloud, points([1, 3]), rounds=1, patience=3)
    assert seen == [[2, 1]]
    assert levels.cloud.virtual_time == 2.0 + 3 * 1.0
    assert model(levels) == (0.75 + 1.5) / 2


def test_a_cloud_cannot_correct_gradients() -> None:
    def corrected(ledger: Ledger, reports: Reports) -> Merge:
        return replace(Mean()(ledger, reports), common=np.ones(1, dtype=np.float32))

    cloud = replace(everyone(), merge=corrected)
    with pytest.raises(InputError, match="which take no gradient steps"):
        two_levels(slow_and_fast(), cloud, points([1, 3]), rounds=2)


def test_saving_is_refused() -> None:
    clusters = slow_and_fast()
    cloud = Run(link_federation(None, clusters), everyone())
    EdgeServers(cloud, cluster_runs(clusters, None, 0, 0.0), patience=3)
    with pytest.raises(InputError, match="A run of two levels cannot be saved"):
        save(cloud)
