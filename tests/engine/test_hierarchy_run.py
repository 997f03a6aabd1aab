"""Runs of hierarchies: by hand, against the slow simulator, and against plain runs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe import Cluster
from cafe.decisions import Everyone
from cafe.engine.client_accuracy import accuracy_by_class
from cafe.errors import InfeasibleError, InputError
from cafe.learn.server_optimisers import Momentum
from cafe.policies import agu, awu, hierarchical, mcu
from cafe.presence import OnOff
from cafe.rounds import HOLD, Carried, Hierarchy, Invitation, Outcome, Work
from cafe.testing.check import small_task
from tests.support.slow_hierarchy import SlowHierarchy
from tests.support.two_levels import everyone, examples, points

pytestmark = pytest.mark.slow


def alternating(federation: cafe.Federation) -> Any:
    """Clients 0, 2, 4, ... report to one edge server, the others to another one."""
    return np.arange(federation.clients) % 2


def one_each(federation: cafe.Federation) -> Any:
    return np.arange(federation.clients)


def together(federation: cafe.Federation) -> Any:
    return np.zeros(federation.clients, dtype=int)


def taking(*times: float) -> cafe.Federation:
    return cafe.Federation.join(*(cafe.Federation(1, cafe.Constant(time)) for time in times))


# ---------------------------------------------------------------- by hand


def test_two_clusters_by_hand() -> None:
    """Clients take 1 and 4 in one cluster, and 2 in the other; the link takes 1/2, both ways.

    A cluster waits for its first report: from 0 to 1, and from 0 to 2. They report at 1.5 and 2.5.
    The cloud waits for both, so its rounds last 2.5.
    """
    first = mcu(quorum=1, deadline=9.0, target=1)
    policy = Hierarchy("pair", alternating, first, everyone(), cafe.Constant(0.5))
    history = cafe.simulate(taking(1.0, 2.0, 4.0), policy, points([1, 3, 5]), rounds=2)
    by_round = {name: column.tolist() for name, column in history.by_round.items()}
    assert by_round["opened"] == [0.0, 2.5]
    assert by_round["closed"] == [2.5, 5.0]
    # Three jobs start in each round. Client 2 is cut off after 1, the time of its cluster's round.
    assert by_round["invited"] == [3, 3]
    assert by_round["reports"] == by_round["used"] == [2, 2]
    assert history.fates["fresh"] == 4
    assert history.fates["cancelled"] == 2
    assert by_round["work"] == [1 + 2 + 1] * 2
    assert by_round["waste"] == by_round["processing_waste"] == [1.0, 1.0]
    assert history.open_jobs == 0
    # Downloads: three clients and two clusters. Reports: two of clients and two of clusters.
    assert by_round["downloads"] == [5, 5]
    assert by_round["bytes_down"] == [5 * 4.0] * 2
    assert by_round["bytes_up"] == [4 * 4.0] * 2
    # Merged jobs started when the round opened, 2.5 before it closed. Client 2 is never merged.
    assert by_round["age"] == [2.5, pytest.approx((2.5 + 2.5 + 5) / 3)]
    # From 0 to 2.5 ages rise from 0, then from 2.5, to which they fall; client 2: from 0 to 5.
    assert history.age_by_client == pytest.approx([(1.25 + 3.75) / 2] * 2 + [2.5])
    assert history.merged_by_client.tolist() == [2, 2, 0]
    assert np.isnan(history.weight_by_client).all()
    # The clusters hold two thirds and one third of the examples. Half of the way to 1 and to 3:
    # 2/3 of 0.5 and 1/3 of 1.5 are 0.83. Then half of the way from there.
    assert history.curve is not None
    assert history.curve.work.tolist()[-1] == 8.0
    one = (2 * 0.5 + 1.5) / 3
    two = one + (2 * (1 - one) / 2 + (3 - one) / 2) / 3
    assert history.model == pytest.approx([two])


def test_report_of_a_late_cluster_is_wasted_with_the_fate_late() -> None:
    """Clients take 1 and 2, the link 1/2. The cloud waits for 1.75: the second cluster is late.

    Its jobs last from 0 to 2, from 2 to 4 and so on. In the second round of the cloud, from 1.75 to
    3.5, its edge server closes a round at 2; the round that closes at 4 belongs to the third one.
    """
    cloud = mcu(quorum=1, deadline=1.75)
    edge = mcu(quorum=1, deadline=9.0, target=1)
    policy = Hierarchy("late", one_each, edge, cloud, cafe.Constant(0.5))
    history = cafe.simulate(taking(1.0, 2.0), policy, rounds=3)
    assert history.by_round["closed"].tolist() == [1.75, 3.5, 5.25]
    assert history.fates["fresh"] == 3
    assert history.fates["late"] == 2
    assert history.by_round["work"].tolist() == [1.0, 3.0, 3.0]
    assert history.by_round["waste"].tolist() == [0.0, 2.0, 2.0]
    assert history.jobs == 5  # the third job of client 1 ends at 6, after the run
    assert history.open_jobs == 0
    # Client 0 is as old as the round is long, 1.75, at each close. Client 1 is never merged.
    assert history.by_round["age"].tolist() == [1.75, (1.75 + 3.5) / 2, 3.5]


def test_asynchronous_cloud_by_hand() -> None:
    """Clients take 1 and 2.5. Each is a cluster, links take no time, and models weigh a half.

    The cloud merges client 0 at 1 and at 2, and client 1, which began at 0, at 2.5.
    """
    policy = hierarchical(clusters=2, goal=1, mixing=0.5, power=1.0)
    history = cafe.simulate(taking(1.0, 2.5), policy, points([1, 3]), rounds=3)
    assert history.by_round["closed"].tolist() == [1.0, 2.0, 2.5]
    assert history.by_round["used"].tolist() == [1, 1, 1]
    assert history.by_round["fates"][:, :2].tolist() == [[1, 0], [1, 0], [0, 1]]
    assert history.by_round["age"].tolist() == [(1 + 1) / 2, (1 + 2) / 2, (1.5 + 2.5) / 2]
    # Client 0: from 0 to 1, from 1 to 2, and from 1 to 1.5. Client 1: from 0 to 2.5.
    assert history.age_by_client.tolist() == [(0.5 + 1.5 + 0.625) / 2.5, 1.25]
    # Client 0 reports 0.5, and half of that is 0.25. From there it reports 0.25 + 0.75 / 2 = 0.625,
    # and the mean is 0.4375. Client 1 reports 1.5. Two updates were made since it began: its weight
    # is a third of a half.
    assert history.model == pytest.approx([0.4375 * 5 / 6 + 1.5 / 6])


def test_an_edge_server_without_clients_takes_no_part() -> None:
    """Edge servers 0, 1 and 2 have links of 7, 1 and 2, and all clients report to 2 or to 1."""
    link = cafe.Constant(np.array([7.0, 1.0, 2.0]))
    policy = Hierarchy("h", two_and_one, everyone(), everyone(), link)
    assert [*policy.clusters(taking(4.0, 1.0, 5.0))] == [1, 2]
    history = cafe.simulate(taking(4.0, 1.0, 5.0), policy, rounds=1)
    assert history.virtual_time == 7.0  # 5 and 2; the other cluster takes 1 and 1
    with pytest.raises(InputError, match="an entry for each of the 3 edge servers"):
        cafe.simulate(
            taking(4.0, 1.0, 5.0), replace(policy, link=link.take(np.arange(2))), rounds=1
        )


def two_and_one(federation: cafe.Federation) -> list[int]:
    return [2, 1, 2]


# ---------------------------------------------------------------- the slow simulator

CLOUDS = [
    everyone(2),
    mcu(quorum=2, deadline=1.5),
    mcu(quorum=1, deadline=0.7, late="keep"),
    mcu(quorum=1, deadline=0.4, steps=2),
    hierarchical(clusters=3, goal=1).cloud,
    hierarchical(clusters=3, goal=1, edge_updates=2, mixing=1.0, power=0.0).cloud,
]
EDGES = [
    mcu(quorum=2, deadline=0.6),
    mcu(quorum=1, deadline=0.5, target=2),
    mcu(quorum=2, deadline=0.3, late="keep"),
    awu(quorum=1, deadline=0.8, steps=2),
    hierarchical(clusters=3, goal=1).edge,
]


def thirds(federation: cafe.Federation) -> Any:
    return np.arange(federation.clients) % 3


def assert_same(history: cafe.History, slow: SlowHierarchy) -> None:
    for name in (f.name for f in fields(Outcome) if not f.name.startswith("bytes")):
        theirs = np.array([getattr(each, name) for each in slow.outcomes])
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(
                history.by_round[name], theirs, rtol=1e-9, atol=1e-9, err_msg=name
            )
        else:
            np.testing.assert_array_equal(history.by_round[name], theirs, err_msg=name)
    np.testing.assert_allclose(history.age_by_client, slow.age_by_client, rtol=1e-9)
    assert history.merged_by_client.tolist() == slow.merged_by_client
    assert history.open_jobs == history.jobs - sum(history.fates.values())


@pytest.mark.parametrize("cloud", CLOUDS, ids=range(len(CLOUDS)))
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    edge=st.sampled_from(EDGES),
    link=st.sampled_from([None, cafe.Exponential(3.0), cafe.Exponential(np.array([1.0, 2, 3]))]),
    crash=st.sampled_from([0.0, 0.2]),
)
def test_equals_the_slow_simulator(
    cloud: Any, seed: int, edge: Any, link: Any, crash: float
) -> None:
    if edge.deadline is None:
        crash = 0.0
    who = cafe.Federation.exponential(np.linspace(1.0, 4.0, 10), np.full(10, 1.0 - crash))
    policy = Hierarchy("thirds", thirds, edge, cloud, link)
    slow = SlowHierarchy(who, policy, None, 12, seed, crash)
    assert_same(cafe.simulate(who, policy, rounds=12, seed=seed, crash=crash), slow)


@pytest.mark.parametrize("edge", EDGES, ids=range(len(EDGES)))
@pytest.mark.parametrize("cloud", CLOUDS, ids=range(len(CLOUDS)))
def test_model_equals_that_of_the_slow_simulator(cloud: Any, edge: Any) -> None:
    who, task = cafe.Federation.exponential(np.linspace(1.0, 4.0, 10)), examples(10)
    policy = Hierarchy("thirds", thirds, edge, cloud, cafe.Exponential(3.0))
    slow = SlowHierarchy(who, policy, task, 10, 5)
    history = cafe.simulate(who, policy, task, rounds=10, seed=5)
    assert_same(history, slow)
    assert history.model == pytest.approx(slow.model, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("late", ["edge", "cloud", "both"])
@pytest.mark.parametrize("pool", ["round", "union"])
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_kept_reports_are_counted_once(seed: int, pool: Any, late: str) -> None:
    """Levels that keep reports of failed rounds, which the slow simulator does not have."""
    edge = agu(quorum=3, deadline=0.4, pool=pool) if late != "cloud" else EDGES[0]
    cloud = agu(quorum=3, deadline=1.0, pool=pool) if late != "edge" else CLOUDS[1]
    who = cafe.Federation.exponential(np.linspace(1.0, 4.0, 12))
    policy = Hierarchy("thirds", thirds, edge, cloud, cafe.Exponential(3.0))
    history = cafe.simulate(who, policy, rounds=25, seed=seed)
    levels = cafe.two_levels(
        [Cluster(who.take(np.arange(k, 12, 3)), edge) for k in range(3)],
        cloud,
        link=cafe.Exponential(3.0),
        rounds=25,
        seed=seed,
    )
    assert history.by_round["closed"].tolist() == levels.cloud.by_round["closed"].tolist()
    assert sum(history.fates.values()) + history.open_jobs == history.jobs
    assert history.open_jobs >= 0
    assert history.merged_by_client.sum() == history.reports_used
    # A report may contain several jobs of a client that has continued from its own model.
    assert history.reports_used <= history.fates["fresh"] + history.fates["stale"]
    assert history.processing_waste <= history.waste + 1e-9
    assert history.processing_waste <= history.client_seconds + 1e-9
    # Clusters play ahead of the cloud's clock, which ends before some of their rounds.
    assert history.client_seconds <= levels.client_seconds + 1e-9
    assert history.waste <= levels.waste + 1e-9
    end = history.virtual_time
    before = [cluster.by_round["closed"] <= end for cluster in levels.clusters]
    for name in ("invited", "reports"):
        pairs = zip(levels.clusters, before, strict=True)
        assert history.by_round[name].sum() == sum(c.by_round[name][b].sum() for c, b in pairs)


# ---------------------------------------------------------------- plain runs


@pytest.mark.parametrize("edge", EDGES, ids=range(len(EDGES)))
def test_one_cluster_without_a_link_has_the_books_of_a_plain_run(edge: Any) -> None:
    """All times, wastes, ages and fates are those of clients. Only the cloud's traffic is added."""
    who, task = cafe.Federation.exponential(np.linspace(1.0, 4.0, 6)), examples(6)
    policy = Hierarchy("one", together, edge, everyone())
    ours = cafe.simulate(who, policy, task, updates=12, seed=4)
    inner = cafe.two_levels([Cluster(who, edge)], everyone(), rounds=1, seed=4).clusters[0]
    plain = cafe.simulate(who, edge, task, updates=12, seed=inner.seed)
    # A round of the cloud lasts until an update: failed rounds before it are part of it.
    last = np.cumsum(plain.by_round["succeeded"]) - plain.by_round["succeeded"]
    for name in ("invited", "reports", "used", "fates", "waste", "processing_waste", "work"):
        whole = np.array([plain.by_round[name][last == k].sum(axis=0) for k in range(12)])
        np.testing.assert_allclose(ours.by_round[name], whole, rtol=1e-12, err_msg=name)
    ends = plain.by_round["succeeded"]
    np.testing.assert_array_equal(ours.by_round["closed"], plain.by_round["closed"][ends])
    np.testing.assert_allclose(ours.by_round["age"], plain.by_round["age"][ends], rtol=1e-12)
    np.testing.assert_allclose(ours.age_by_client, plain.age_by_client, rtol=1e-12)
    np.testing.assert_array_equal(ours.merged_by_client, plain.merged_by_client)
    assert ours.open_jobs == plain.open_jobs
    assert ours.downloads == plain.downloads + 12
    assert ours.model == pytest.approx(plain.model, rel=1e-4, abs=1e-6)


def test_equals_two_levels_with_the_same_clusters() -> None:
    """Costs and model are those of ``two_levels``, with clients in the order of the clusters."""
    who, task = cafe.Federation.exponential(np.linspace(1.0, 4.0, 7)), examples(7)
    order, edge, link = [0, 2, 4, 6, 1, 3, 5], mcu(quorum=2, deadline=0.6), cafe.Constant(0.5)
    history = cafe.simulate(
        who, Hierarchy("h", alternating, edge, everyone(2), link), task, rounds=9, seed=8
    )
    rates = np.linspace(1.0, 4.0, 7)[order]
    clusters = [Cluster(cafe.Federation.exponential(some), edge) for some in (rates[:4], rates[4:])]
    shards = cafe.data.Shards.of([task.shards[client] for client in order])
    levels = cafe.two_levels(
        clusters, everyone(2), replace(task, shards=shards), link=link, rounds=9, seed=8
    )
    assert history.waste == pytest.approx(levels.waste)
    assert history.processing_waste == pytest.approx(levels.processing_waste)
    assert history.client_seconds == pytest.approx(levels.client_seconds)
    assert history.downloads == levels.downloads
    assert (history.bytes_down, history.bytes_up) == (levels.bytes_down, levels.bytes_up)
    np.testing.assert_array_equal(history.model, levels.model)
    merged = np.concatenate([cluster.merged_by_client for cluster in levels.clusters])
    np.testing.assert_array_equal(history.merged_by_client[order], merged)
    assert history.loss == levels.cloud.loss


def test_accuracy_by_client_is_in_the_order_of_the_clients() -> None:
    who, what = cafe.Federation.exponential(np.linspace(1.0, 4.0, 14)), small_task(14)
    history = cafe.simulate(who, hierarchy(), what, rounds=15)
    assert history.model is not None
    model = what.learner.load(history.model)
    by_class = accuracy_by_class(what.learner, model, what.held)
    assert by_class is not None
    for client, found in enumerate(history.accuracy_by_client.tolist()):  # type: ignore[union-attr]
        mine = what.data.y[what.shards[client]]
        assert found == pytest.approx(np.mean([by_class[label] for label in mine]))


# ---------------------------------------------------------------- presence, crashes, errors


def test_clients_with_presence() -> None:
    who = cafe.Federation(9, cafe.Exponential(2.0), presence=OnOff(on=3.0, off=2.0))
    policy = Hierarchy("h", thirds, mcu(quorum=1, deadline=0.8, late="keep"), everyone(2))
    history = cafe.simulate(who, policy, rounds=20, crash=0.1)
    assert history.fates["crashed"] > 0
    assert history.by_round["invited"].sum() == sum(history.fates.values()) + history.open_jobs


def test_cluster_that_gives_up() -> None:
    """Client 1 takes 9 and its cluster waits for 2, three times: its job is lost at 6."""
    policy = Hierarchy("h", one_each, mcu(quorum=1, deadline=2.0), mcu(quorum=1, deadline=8.0))
    history = cafe.simulate(taking(1.0, 9.0), policy, rounds=1, patience=3)
    assert history.fates["fresh"] == 1
    assert history.fates["late"] == 3
    assert (history.waste, history.client_seconds) == (6.0, 7.0)


def test_held_reports_that_are_used_twice_are_refused() -> None:
    """Client 0 reports in the first round, and client 1 in the second one."""
    cloud = replace(
        mcu(quorum=1, deadline=1.5),
        invite=lambda ledger, rng: Invitation(np.array([ledger.round])),
        carry=lambda ledger, closed: Carried(HOLD, kept=True),
    )
    policy = Hierarchy("h", one_each, mcu(quorum=1, deadline=9.0, target=1), cloud)
    with pytest.raises(InputError, match="has used a report of a cluster twice"):
        cafe.simulate(taking(1.0, 1.0), policy, rounds=2)


def test_errors_name_the_cluster() -> None:
    edge = mcu(quorum=4, deadline=1.0)
    with pytest.raises(InputError, match="Cluster 1: The quorum must be at most"):
        cafe.simulate(cafe.Federation(7, cafe.Constant(1.0)), hierarchy(edge=edge), rounds=1)
    loss = replace(mcu(quorum=1, deadline=1.0), needs=frozenset({"losses"}))
    who = cafe.Federation(6, cafe.Constant(0.5))
    with pytest.raises(InputError, match=r"Cluster 0: .* needs losses.* secure aggregation"):
        cafe.simulate(who, hierarchy(edge=loss), examples(6), rounds=1, secure_aggregation=True)


def hierarchy(**changes: Any) -> Hierarchy:
    base = Hierarchy("h", alternating, mcu(quorum=1, deadline=1.0), everyone())
    return replace(base, **changes)


def test_rounds_that_never_succeed() -> None:
    cloud = mcu(quorum=2, deadline=1.5)
    with pytest.raises(InfeasibleError, match="3 rounds in a row have failed under mcu"):
        cafe.simulate(
            taking(1.0, 2.0), hierarchy(edge=everyone(), cloud=cloud), rounds=9, patience=3
        )


@pytest.mark.parametrize("wrong", [[0, 1], [0, 1, -1], [0.0, 1.0, 2.0], None])
def test_wrong_assignments(wrong: Any) -> None:
    with pytest.raises(InputError, match="the number of an edge server, from 0 up, for each of"):
        cafe.simulate(taking(1.0, 2.0, 3.0), hierarchy(assign=lambda federation: wrong), rounds=1)


def test_text_and_identity_without_parameters() -> None:
    both = mcu(quorum=1, deadline=1.0)
    one = Hierarchy("h", alternating, both, both)
    assert f"{one}" == f"h(edge={both}, cloud={both})"
    others = [
        replace(one, assign=one_each),
        replace(one, link=cafe.Constant(1.0)),
        replace(one, edge=mcu(quorum=1, deadline=1.5)),
        replace(one, cloud=mcu(quorum=1, deadline=1.5)),
    ]
    assert len({each.identity for each in (one, *others)}) == 5
    with pytest.raises(InputError, match="needs of a hierarchy must be a set of"):
        replace(one, needs=frozenset({"speed"}))


def test_task_for_another_number_of_clients() -> None:
    with pytest.raises(InputError, match="data for 5 clients and the federation has 4"):
        cafe.simulate(cafe.Federation(4, cafe.Constant(1.0)), hierarchy(), examples(5), rounds=1)


def test_the_optimiser_of_the_task_is_used_by_the_cloud() -> None:
    """Two steps of a half go from 0 to 0.75; the cloud doubles that."""
    task = points([1.0], server=Momentum(rate=2.0, momentum=0.0))
    policy = Hierarchy("h", one_each, everyone(), replace(everyone(), invite=Everyone(Work(2))))
    assert cafe.simulate(taking(1.0), policy, task, rounds=1).model == pytest.approx([1.5])
