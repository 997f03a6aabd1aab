"""Two levels: by hand, against a plain loop over the reference, and against one level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe import Cluster, Levels, two_levels
from cafe.data.examples import Examples, Shards
from cafe.decisions import DropAll, Everyone, Mean, Sample, closing
from cafe.engine import Run
from cafe.engine.clusters import cluster_runs, link_federation
from cafe.engine.edge_servers import EdgeServers
from cafe.engine.snapshot import save
from cafe.errors import InfeasibleError, InputError
from cafe.learn.linear import Logistic
from cafe.learn.quadratic import Quadratic
from cafe.learn.server_optimisers import Momentum
from cafe.policies import agu, awu, fedavg, mcu
from cafe.presence import OnOff, Trace
from cafe.randomness import Stream
from cafe.reference import Reference
from cafe.rounds import LOCAL, Carried, Invitation, Ledger, Merge, Policy, Reports, Work


def everyone(steps: int = 1, **changes: Any) -> Policy:
    """Waits for all."""
    work = Work(steps, **changes)
    return Policy(
        "everyone", Everyone(work), merge=Mean(), carry=DropAll(), **closing(1, None, all_in=True)
    )


def points(by_client: Sequence[float], **changes: Any) -> cafe.Task:
    """One example each: a client draws the model half the way to its own point."""
    data = Examples(np.array(by_client, dtype=float)[:, None], np.zeros(len(by_client)))
    shards = Shards.of([np.array([k]) for k in range(len(by_client))])
    given: dict[str, Any] = {"batch": None, "rate": 0.5} | changes
    return cafe.Task(data, shards, Quadratic(1), **given)


def slow_and_fast() -> list[Cluster]:
    """A client that takes 1, and one that takes 2."""
    return [
        Cluster(cafe.Federation(1, cafe.Constant(time)), mcu(quorum=1, deadline=time))
        for time in (1.0, 2.0)
    ]


def model(levels: Levels) -> float:
    assert levels.model is not None
    return float(levels.model[0])


# ---------------------------------------------------------------- by hand


def test_the_cloud_waits_for_both() -> None:
    """From 0: 0.5 and 1.5 at 1.5 and 2.5, the mean is 1. From 1: 1 and 2, the mean is 1.5."""
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
    """0.5, 0.75 at 2.5 and 1.5, 2.25 at 4.5: the mean is 1.5."""
    half = cafe.Constant(0.5)
    levels = two_levels(slow_and_fast(), everyone(2), points([1, 3]), link=half, rounds=1)
    assert levels.cloud.virtual_time == 4.5
    assert [cluster.updates for cluster in levels.clusters] == [2, 2]
    assert model(levels) == 1.5


def test_links_may_differ() -> None:
    levels = two_levels(
        slow_and_fast(), everyone(), link=cafe.Constant(np.array([4.0, 0.5])), rounds=1
    )
    assert levels.cloud.virtual_time == 5.0


def test_a_late_cluster_finishes_first_and_has_worked_for_nothing() -> None:
    """Its jobs last from 0 to 2, from 2 to 4, from 4 to 6, and the cloud closes each 1.75."""
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


def test_a_late_cluster_may_run_on() -> None:
    """It reports 1.5, from 0, when the model is at 0.5 and the other cluster reports 0.25."""
    half = cafe.Constant(0.5)
    cloud = mcu(quorum=1, deadline=1.75, late="keep")
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=half, rounds=2)
    assert model(levels) == 0.5 + (0.25 + 1.5) / 2
    assert levels.cloud.fates["stale"] == 1
    assert levels.discarded == 0


def test_a_cluster_goes_on_from_its_own_model() -> None:
    """The first round fails. Then 0.75 is reported after 0.5, and 1.5."""

    def cloud(ledger: Ledger, seen: Any) -> Policy:
        return agu(quorum=2, deadline=2.0 if ledger.round == 0 else 3.0)

    half = cafe.Constant(0.5)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), link=half, rounds=2)
    assert levels.cloud.by_round["succeeded"].tolist() == [False, True]
    assert model(levels) == (0.75 + 1.5) / 2
    assert levels.discarded == 2.0  # the second cluster's first job


@pytest.mark.parametrize(("pool", "reached", "discarded"), [("round", 1.5, 1.0), ("union", 1.0, 0)])
def test_a_kept_report_is_discarded_when_it_is_dropped(
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


def test_a_cluster_may_always_go_on_from_its_own_model() -> None:
    """0.5, then 0.75, both reported as changes of the first model, 0."""
    cloud = replace(everyone(), carry=lambda ledger, closed: Carried(LOCAL, kept=True))
    levels = two_levels([slow_and_fast()[0]], cloud, points([1]), rounds=2)
    assert model(levels) == 0.5 + 0.75


def test_clusters_count_by_their_examples() -> None:
    """Two clients draw to 1, one to 4: 2/3 of 0.5 and 1/3 of 2, by the mean and by size alike."""
    clusters = [
        Cluster(cafe.Federation(n, cafe.Constant(1.0)), mcu(quorum=1, deadline=1.0)) for n in (2, 1)
    ]
    for cloud in (everyone(), fedavg(fraction=1.0, steps=1)):
        assert model(two_levels(clusters, cloud, points([1, 1, 4]), rounds=1)) == pytest.approx(1.0)
    plain = two_levels(clusters, everyone(scaled=False), points([1, 1, 4]), rounds=1)
    assert model(plain) == pytest.approx((0.5 + 2.0) / 2)


def test_the_server_optimiser_is_the_cloud_s() -> None:
    """Clusters add up 0.5 and 0.25 towards 1; the cloud doubles their sum."""
    one = [slow_and_fast()[0]]
    server = Momentum(rate=2.0, momentum=0.0)
    levels = two_levels(one, everyone(2), points([1], server=server), rounds=1)
    assert model(levels) == 1.5


def test_the_cloud_may_look_at_updates() -> None:
    def largest(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        return Merge((reports.updates[:, 0] == reports.updates.max()).astype(float))

    cloud = replace(everyone(), merge=largest, needs=frozenset({"updates", "labels"}))
    task = points([1, 3])
    task = replace(task, data=Examples(task.data.x, np.array([0, 1])))
    levels = two_levels(slow_and_fast(), cloud, task, rounds=1)
    assert model(levels) == 1.5
    assert levels.discarded == 1.0  # of the other cluster, whose report had no weight


# ---------------------------------------------------------------- giving up, getting lost


def test_a_cluster_that_gives_up_is_lost() -> None:
    """Its deadline is too short for anybody: after 3 rounds, at 3, its job is over."""
    clusters = slow_and_fast()
    clusters[1] = replace(clusters[1], policy=mcu(quorum=1, deadline=1.0))
    cloud = mcu(quorum=1, deadline=5.0)
    levels = two_levels(clusters, cloud, points([1, 3]), rounds=2, patience=3)
    assert levels.cloud.fates["crashed"] == 2
    assert levels.cloud.processing_waste == 6.0
    assert levels.clusters[1].rounds == 6
    assert levels.discarded == 0  # its own books have it
    assert levels.waste == 6.0
    assert model(levels) == 0.75


def test_a_cluster_that_gives_up_reports_what_it_has() -> None:
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


def test_links_may_fail_and_clusters_may_leave() -> None:
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


def test_a_cluster_that_nobody_invites() -> None:
    cloud = replace(everyone(), invite=Sample(1), cohort=1)
    levels = two_levels(slow_and_fast(), cloud, points([1, 3]), rounds=1)
    assert sorted(cluster.rounds for cluster in levels.clusters) == [0, 1]
    assert levels.client_seconds in (1.0, 2.0)


# ---------------------------------------------------------------- the slow twin


def examples(clients: int, seed: int = 3) -> cafe.Task:
    """Shards of unequal sizes."""
    rng = np.random.default_rng(seed)
    data = Examples(rng.normal(size=(200, 3)), rng.integers(2, size=200))
    shards = Shards.of([rng.choice(200, rng.integers(4, 30)) for _ in range(clients)])
    return cafe.Task(data, shards, Logistic(3, 2, l2=0.1), batch=5, rate=lambda t: 1.0 / (1.0 + t))


INNER = [
    mcu(quorum=2, deadline=0.6),
    mcu(quorum=2, deadline=0.5, late="keep"),
    agu(quorum=3, deadline=0.6),
    awu(quorum=1, deadline=0.8, steps=2),
]


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
def test_one_cluster_is_its_own_plain_run(inner: Policy, steps: int) -> None:
    """Everything but the version, which counts the models from the cloud too, to the bit."""
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
def test_what_holds_of_every_run(cloud: Policy, seed: int, inner: Policy) -> None:
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
    # With a task and without, the books are the same; and again they are the same.
    for other in (books, again):
        pairs = zip((history, *levels.clusters), (other.cloud, *other.clusters), strict=True)
        for mine, theirs in pairs:
            for name, column in mine.by_round.items():
                if not name.startswith("bytes"):
                    np.testing.assert_array_equal(column, theirs.by_round[name], err_msg=name)
        assert other.discarded == levels.discarded
    np.testing.assert_array_equal(levels.model, again.model)


def test_clusters_with_the_same_clients_do_not_do_the_same() -> None:
    clusters = [Cluster(cafe.Federation(5, cafe.Exponential(1.0)), INNER[0])] * 2
    levels = two_levels(clusters, everyone(), rounds=5, seed=1)
    one, other = (cluster.by_round["waste"] for cluster in levels.clusters)
    assert one.tolist() != other.tolist()
    seeds = {levels.cloud.seed, *(cluster.seed for cluster in levels.clusters)}
    assert len(seeds) == 3


def test_clients_that_come_and_go() -> None:
    who = cafe.Federation(8, cafe.Exponential(2.0), presence=OnOff(on=3.0, off=2.0))
    cluster = Cluster(who, mcu(quorum=2, deadline=0.8, late="keep"))
    levels = two_levels([cluster] * 2, everyone(2), link=cafe.Constant(1.0), rounds=20, crash=0.1)
    for each in levels.clusters:
        assert each.fates["crashed"] > 0
        assert np.all(np.diff(each.by_round["closed"]) >= 0)
        assert sum(each.fates.values()) + each.open_jobs == each.jobs


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
         "Cluster 0: Expected a policy"),
        (lambda: ILL(FAST, everyone(), points([1, 2, 3]), rounds=1),
         "data for 3 clients and the clusters have 2 in all"),
        (lambda: ILL(FAST, everyone(), link=0.5, rounds=1), "link must be a latency, or a fed"),
        (lambda: ILL(FAST, everyone(), link=cafe.Federation(3, cafe.Constant(1.0)), rounds=1),
         "a client for each of the 2 clusters"),
        (lambda: ILL(FAST, everyone(), rounds=1,
                     link=cafe.Federation(2, cafe.Constant(1.0), per_step=1.0)), "has no per_step"),
        (lambda: ILL(FAST, fedavg(fraction=1.0), rounds=1), r"number of updates, Work\(steps"),
        (lambda: ILL(FAST, everyone(prox=0.1), rounds=1), r"epochs, seconds and prox belong in"),
        (lambda: ILL(FAST, replace(everyone(), needs=frozenset({"losses"})), points([1, 3]),
                     rounds=1), "needs losses of clients, and the cloud's clients are clusters"),
        (lambda: ILL([Cluster(FAST[0].federation, everyone())], everyone(), rounds=1, crash=0.1),
         "Cluster 0: Without a deadline"),
        (lambda: ILL(FAST, everyone(), rounds=1, patience=0), "patience"),
        (lambda: ILL(FAST, mcu(quorum=3, deadline=1.0), rounds=1), "at most the number of invited"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_a_sentence(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_cloud_cannot_correct_gradients() -> None:
    def corrected(ledger: Ledger, reports: Reports) -> Merge:
        return replace(Mean()(ledger, reports), common=np.ones(1, dtype=np.float32))

    cloud = replace(everyone(), merge=corrected)
    with pytest.raises(InputError, match="which take no gradient steps"):
        two_levels(slow_and_fast(), cloud, points([1, 3]), rounds=2)


def test_it_is_not_saved() -> None:
    clusters = slow_and_fast()
    cloud = Run(link_federation(None, clusters), everyone())
    EdgeServers(cloud, cluster_runs(clusters, None, 0, 0.0), patience=3)
    with pytest.raises(InputError, match="A run of two levels cannot be saved"):
        save(cloud)


def test_a_cloud_that_never_succeeds() -> None:
    with pytest.raises(InfeasibleError, match="3 rounds in a row have failed under mcu"):
        two_levels(slow_and_fast(), mcu(quorum=2, deadline=1.5), rounds=9, patience=3)
