"""Clusters, their links and examples, and mistakes in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import Cluster, two_levels
from cafe.errors import InputError
from cafe.policies import fedavg, mcu
from cafe.presence import Trace
from tests.support.two_levels import INNER, everyone, model, points, slow_and_fast


def test_links_may_have_different_latencies() -> None:
    levels = two_levels(
        slow_and_fast(), everyone(), link=cafe.Constant(np.array([4.0, 0.5])), rounds=1
    )
    assert levels.cloud.virtual_time == 5.0


def test_clusters_are_weighted_by_their_examples() -> None:
    """Two clients hold the point 1, one holds 4: the model is 2/3 of 0.5 plus 1/3 of 2."""
    clusters = [
        Cluster(cafe.Federation(n, cafe.Constant(1.0)), mcu(quorum=1, deadline=1.0)) for n in (2, 1)
    ]
    for cloud in (everyone(), fedavg(fraction=1.0, steps=1)):
        assert model(two_levels(clusters, cloud, points([1, 1, 4]), rounds=1)) == pytest.approx(1.0)
    plain = two_levels(clusters, everyone(scaled=False), points([1, 1, 4]), rounds=1)
    assert model(plain) == pytest.approx((0.5 + 2.0) / 2)


def test_clusters_may_be_absent_or_leave() -> None:
    """The second cluster leaves at 1.5, in the middle of its job."""
    away = cafe.Federation(2, cafe.Constant(0.5), presence=Trace([[0, 0, 99], [1, 0, 1.5]]))
    cloud = mcu(quorum=1, deadline=3.0)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=away, rounds=2)
    assert levels.cloud.fates["crashed"] == 1
    assert levels.cloud.processing_waste == 1.5
    assert levels.discarded == 2.0
    rare = cafe.Federation(2, cafe.Constant(0.5), availability=0.5)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=rare, rounds=40)
    assert 20 < levels.cloud.fates["absent"] < 60
    assert sum(c.updates for c in levels.clusters) == 80 - levels.cloud.fates["absent"]


def test_clusters_with_equal_clients_have_different_seeds() -> None:
    clusters = [Cluster(cafe.Federation(5, cafe.Exponential(1.0)), INNER[0])] * 2
    levels = two_levels(clusters, everyone(), rounds=5, seed=1)
    one, other = (cluster.by_round["waste"] for cluster in levels.clusters)
    assert one.tolist() != other.tolist()
    seeds = {levels.cloud.seed, *(cluster.seed for cluster in levels.clusters)}
    assert len(seeds) == 3


# ---------------------------------------------------------------- mistakes


ILL: Any = two_levels


FAST = slow_and_fast()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ILL([], everyone(), rounds=1), "At least one cluster is needed"),
        (lambda: ILL(FAST[0], everyone(), rounds=1), "At least one cluster is needed, in a list"),
        (lambda: ILL([FAST[0].federation], everyone(), rounds=1), r"cafe.Cluster\(federation, pol"),
        (lambda: ILL(FAST, everyone()), "rounds, updates and time is required"),
        (lambda: ILL(FAST, None, rounds=1), "Expected a policy"),
        (lambda: ILL([Cluster(FAST[0].federation, ILL.__class__)], everyone(), rounds=1),
         "Expected a policy"),
        (lambda: ILL(FAST, everyone(), points([1, 2, 3]), rounds=1),
         "data for 3 clients, but the clusters have 2 in all"),
        (lambda: ILL(FAST, everyone(), link=0.5, rounds=1), "link must be a latency, or a fed"),
        (lambda: ILL(FAST, everyone(), link=cafe.Federation(3, cafe.Constant(1.0)), rounds=1),
         "a client for each of the 2 clusters"),
        (lambda: ILL(FAST, everyone(), rounds=1,
                     link=cafe.Federation(2, cafe.Constant(1.0), per_step=1.0)), "has no per_step"),
        (lambda: ILL(FAST, fedavg(fraction=1.0), rounds=1), r"number of updates, Work\(steps"),
        (lambda: ILL(FAST, everyone(prox=0.1), rounds=1), r"epochs, seconds and prox belong in"),
        (lambda: ILL(FAST, replace(everyone(), needs=frozenset({"losses"})), points([1, 3]),
                     rounds=1), "needs losses of clients, but the cloud's clients are clusters"),
        (lambda: ILL([Cluster(FAST[0].federation, everyone())], everyone(), rounds=1, crash=0.1),
         "Cluster 0: Without a deadline"),
        (lambda: ILL(FAST, everyone(), rounds=1, patience=0), "patience"),
        (lambda: ILL(FAST, mcu(quorum=3, deadline=1.0), rounds=1), "at most the number of invited"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
