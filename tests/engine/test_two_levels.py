"""Runs with two levels, by hand and against plain loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe import Cluster, Levels, two_levels
from cafe.data.examples import Shards
from cafe.decisions import Sample
from cafe.errors import InfeasibleError
from cafe.learn.server_optimisers import Momentum
from cafe.policies import agu, mcu
from cafe.presence import OnOff
from cafe.randomness import Stream
from cafe.reference import Reference
from cafe.rounds import Policy
from tests.support.two_levels import INNER, everyone, examples, model, points, slow_and_fast

pytestmark = pytest.mark.slow

# ---------------------------------------------------------------- by hand


def test_cloud_waits_for_both_clusters() -> None:
    """From 0, clusters report 0.5 and 1.5, with mean 1. From 1 they report 1 and 2, mean 1.5."""
    half = cafe.Constant(0.5)
    levels = two_levels(slow_and_fast(), everyone(), points([1, 3]), link=half, rounds=2)
    assert levels.cloud.by_round["closed"].tolist() == [2.5, 5.0]
    assert levels.clusters[0].by_round["opened"].tolist() == [0.0, 2.5]
    assert levels.clusters[0].by_round["closed"].tolist() == [1.0, 3.5]
    assert levels.clusters[1].by_round["closed"].tolist() == [2.0, 4.5]
    assert model(levels) == 1.5
    assert (levels.client_seconds, levels.waste, levels.discarded) == (6.0, 0.0, 0.0)
    assert levels.cloud.client_seconds == 2 * (1.5 + 2.5)
    assert levels.downloads == 8
    assert levels.bytes_down == levels.bytes_up == 8 * 4


def test_a_cluster_makes_several_updates_before_it_reports() -> None:
    """One reports 0.75 (after 0.5) at 2.5, the other 2.25 (after 1.5) at 4.5: the mean is 1.5."""
    half = cafe.Constant(0.5)
    levels = two_levels(slow_and_fast(), everyone(2), points([1, 3]), link=half, rounds=1)
    assert levels.cloud.virtual_time == 4.5
    assert [cluster.updates for cluster in levels.clusters] == [2, 2]
    assert model(levels) == 1.5


def test_server_optimiser_applies_at_the_cloud() -> None:
    """Clusters add up 0.5 and 0.25 towards 1; the cloud doubles their sum."""
    one = [slow_and_fast()[0]]
    server = Momentum(rate=2.0, momentum=0.0)
    levels = two_levels(one, everyone(2), points([1], server=server), rounds=1)
    assert model(levels) == 1.5


def test_cluster_that_is_not_invited() -> None:
    cloud = replace(everyone(), invite=Sample(1), cohort=1)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), rounds=1)
    assert sorted(cluster.rounds for cluster in levels.clusters) == [0, 1]
    assert levels.client_seconds in (1.0, 2.0)


@pytest.mark.parametrize("inner", INNER, ids=str)
@pytest.mark.parametrize("per", ["round", "update"])
def test_equals_a_plain_loop_over_the_reference(inner: Policy, per: Any) -> None:
    sizes, steps, rounds, seed = (4, 3, 5), 3, 5, 11
    ends = np.cumsum(sizes)
    task = replace(examples(int(ends[-1])), per=per)
    clusters = [Cluster(cafe.Federation(n, cafe.Exponential(0.2 * n)), inner) for n in sizes]
    link = cafe.Federation(3, cafe.Exponential(np.array([1.0, 2.0, 3.0])))
    levels = two_levels(clusters, everyone(steps), task, link=link, rounds=rounds, seed=seed)

    twins, shares = [], []
    for k, (n, end) in enumerate(zip(sizes, ends.tolist(), strict=True)):
        mine = Shards.of([task.shards[i] for i in range(end - n, end)])
        part = replace(task, shards=mine)
        twins.append(Reference(clusters[k].federation, inner, part, seed=levels.clusters[k].seed))
        shares.append(len(mine.rows) / len(task.shards.rows))
    now, w = 0.0, task.learner.start(np.random.default_rng(0))
    for number in range(rounds):
        draws = link.draw(Stream(seed, "latency").at(number), np.arange(3))
        arrivals, change = [], np.zeros_like(w)
        for twin, share, draw in zip(twins, shares, draws.tolist(), strict=True):
            twin.now = max(twin.now, now)
            twin.set_model(w)
            made = 0
            while made < steps:
                made += twin.step().succeeded
            arrivals.append(twin.now + draw)
            assert twin.trainer is not None
            change += share * (twin.trainer.models[-1] - w)
        now, w = max(arrivals), w + change
        assert levels.cloud.by_round["closed"][number] == now
    assert levels.model is not None
    np.testing.assert_allclose(levels.model, w, rtol=1e-4, atol=1e-6)
    for cluster, twin in zip(levels.clusters, twins, strict=True):
        theirs = twin.history()
        for name, column in cluster.by_round.items():
            np.testing.assert_array_equal(column, theirs.by_round[name], err_msg=name)
        np.testing.assert_array_equal(cluster.merged_by_client, theirs.merged_by_client)
    assert any(not cluster.by_round["succeeded"].all() for cluster in levels.clusters)


# ---------------------------------------------------------------- one level


@pytest.mark.parametrize("inner", INNER, ids=str)
@pytest.mark.parametrize("steps", [1, 3])
def test_one_cluster_equals_a_plain_run(inner: Policy, steps: int) -> None:
    """All but the version is equal to the bit; the version also counts models from the cloud."""
    who, task = cafe.Federation(6, cafe.Exponential(1.0)), examples(6)
    levels = two_levels([Cluster(who, inner)], everyone(steps), task, rounds=12 // steps, seed=4)
    ours = levels.clusters[0]
    plain = cafe.simulate(who, inner, task, updates=12, seed=ours.seed)
    for name, column in plain.by_round.items():
        if name != "version":
            np.testing.assert_array_equal(ours.by_round[name], column, err_msg=name)
    after = np.cumsum(ours.by_round["succeeded"])
    before = after - ours.by_round["succeeded"]
    np.testing.assert_array_equal(ours.by_round["version"], after + before // steps + 1)
    np.testing.assert_array_equal(ours.age_by_client, plain.age_by_client)
    np.testing.assert_array_equal(ours.weight_by_client, plain.weight_by_client)
    assert levels.cloud.virtual_time == plain.virtual_time
    assert levels.model is not None
    assert plain.model is not None
    np.testing.assert_allclose(levels.model, plain.model, rtol=1e-4, atol=1e-6)
    assert levels.cloud.loss == pytest.approx(plain.loss, rel=1e-5)
    assert (levels.waste, levels.client_seconds) == (plain.waste, plain.client_seconds)


CLOUDS = [
    everyone(2),
    mcu(quorum=2, deadline=1.5),
    mcu(quorum=1, deadline=0.7, late="keep"),
    agu(quorum=3, deadline=1.2),
    agu(quorum=3, deadline=1.2, pool="union"),
]


@pytest.mark.parametrize("cloud", CLOUDS, ids=str)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), inner=st.sampled_from(INNER))
def test_invariants_hold_in_every_run(cloud: Policy, seed: int, inner: Policy) -> None:
    clusters = [Cluster(cafe.Federation(n, cafe.Exponential(4.0)), inner) for n in (3, 4, 3)]
    link = cafe.Exponential(5.0)

    def play(task: cafe.Task | None) -> Levels:
        return two_levels(clusters, cloud, task, link=link, rounds=12, seed=seed)

    levels, books, again = play(examples(10)), play(None), play(examples(10))
    history = levels.cloud
    assert sum(history.fates.values()) + history.open_jobs == history.jobs
    for cluster in levels.clusters:
        opened, closed = cluster.by_round["opened"], cluster.by_round["closed"]
        assert np.all(closed >= opened)
        assert np.all(opened[1:] >= closed[:-1])
    used = levels.client_seconds - sum(c.processing_waste for c in levels.clusters)
    assert -1e-9 <= levels.discarded <= used + 1e-9
    if not history.open_jobs and history.fates["fresh"] + history.fates["stale"] == history.jobs:
        assert levels.discarded == 0
    # The books are the same without a task, and in a second run.
    for other in (books, again):
        pairs = zip((history, *levels.clusters), (other.cloud, *other.clusters), strict=True)
        for mine, theirs in pairs:
            for name, column in mine.by_round.items():
                if not name.startswith("bytes"):
                    np.testing.assert_array_equal(column, theirs.by_round[name], err_msg=name)
        assert other.discarded == levels.discarded
    np.testing.assert_array_equal(levels.model, again.model)


def test_clients_with_presence() -> None:
    who = cafe.Federation(8, cafe.Exponential(2.0), presence=OnOff(on=3.0, off=2.0))
    cluster = Cluster(who, mcu(quorum=2, deadline=0.8, late="keep"))
    levels = two_levels([cluster] * 2, everyone(2), link=cafe.Constant(1.0), rounds=20, crash=0.1)
    for each in levels.clusters:
        assert each.fates["crashed"] > 0
        assert np.all(np.diff(each.by_round["closed"]) >= 0)
        assert sum(each.fates.values()) + each.open_jobs == each.jobs


def test_a_cloud_that_never_succeeds() -> None:
    with pytest.raises(InfeasibleError, match="3 rounds in a row have failed under mcu"):
        two_levels(slow_and_fast(), mcu(quorum=2, deadline=1.5), rounds=9, patience=3)
