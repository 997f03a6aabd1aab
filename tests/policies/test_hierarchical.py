"""Timely asynchronous hierarchical averaging: weights by hand, and ages that do not grow."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import cafe
from cafe.decisions.staleness import MixModels, PowerDamping
from cafe.errors import InputError
from cafe.policies import hierarchical, mcu
from cafe.rounds import Hierarchy, Ledger, Policy, Reports
from tests.support.federations import taking
from tests.support.two_levels import points

SEEDS = 12
SHIFTED = cafe.ShiftedExponential(rate=2.0, shift=0.5)  # the mean is 1


def mean_ages(clients: int, policy: Policy | Hierarchy, time: float) -> tuple[float, float]:
    """The mean age of clients over runs with different seeds, and its standard error."""
    who = cafe.Federation(clients, SHIFTED)
    ages = [cafe.simulate(who, policy, time=time, seed=k).mean_age for k in range(SEEDS)]
    return float(np.mean(ages)), float(np.std(ages, ddof=1) / np.sqrt(SEEDS))


@pytest.mark.slow
def test_mean_age_does_not_grow_with_the_number_of_clients() -> None:
    """With 8, 16 and 32 clients, 4 in each cluster; a single server that also uses 2 per update.

    All clients of a cluster report equally often, whatever the other clusters do. A round of a
    single server lasts at least 0.5, and 2 of N clients are merged in it. So its age grows like N.
    """
    sizes = (8, 16, 32)
    two = [mean_ages(n, hierarchical(clusters=n // 4, goal=2, link=0.2), 60.0) for n in sizes]
    one = [mean_ages(n, mcu(quorum=2, deadline=99.0, target=2), 60.0) for n in sizes]
    (age, error), *larger = two
    for other, its_error in larger:
        assert abs(other - age) < 4 * np.hypot(error, its_error)
        assert abs(other - age) < 0.05 * age
    for (age, error), (other, its_error) in pairwise(one):
        assert other - 1.4 * age > 3 * np.hypot(1.4 * error, its_error)
    assert one[-1][0] > 3 * two[-1][0]


@pytest.mark.slow
def test_age_of_a_cluster_of_one_client() -> None:
    """Each client is a cluster. It is merged at the end of each job, with its link.

    Jobs and links take a time X with mean 1.2 and variance 1/4 + 1/25. Ages rise from the length of
    the last job, so that the mean age is E[X] + E[X^2] / (2 E[X]).
    """
    expected = 1.2 + (0.25 + 0.04 + 1.44) / 2.4
    age, error = mean_ages(6, hierarchical(clusters=6, goal=1, link=0.2), 150.0)
    assert abs(age - expected) < 4 * error
    assert error < 0.02


def test_edge_server_restarts_all_clients_after_its_first_reports() -> None:
    """Clients take 1, 2 and 3. The second report comes at 2; then all three start again."""
    history = cafe.simulate(taking(1.0, 2.0, 3.0), hierarchical(clusters=1, goal=2), rounds=3)
    assert history.by_round["closed"].tolist() == [2.0, 4.0, 6.0]
    assert history.merged_by_client.tolist() == [3, 3, 0]
    assert history.fates["cancelled"] == 3


def test_deadline_ends_a_wait_for_the_goal() -> None:
    """Clients take 1 and 9: at 4 there is one report, which is used alone."""
    policy = hierarchical(clusters=1, goal=2, deadline=4.0)
    history = cafe.simulate(taking(1.0, 9.0), policy, rounds=2)
    assert history.by_round["closed"].tolist() == [4.0, 8.0]
    assert history.by_round["used"].tolist() == [1, 1]
    assert history.fates["late"] == 2


def test_cluster_makes_several_updates_before_it_reports() -> None:
    """Half of the way from 0 to 1, twice, is 0.75; the cloud takes 0.4 of that."""
    policy = hierarchical(clusters=1, goal=1, edge_updates=2, mixing=0.4)
    history = cafe.simulate(taking(1.0), policy, points([1.0]), rounds=1)
    assert history.virtual_time == 2.0
    assert history.model == pytest.approx([0.3])


def test_weight_falls_with_staleness() -> None:
    """Version 5, reports of versions 5, 2 and 5: weights 1/2, 1/4 and 1/2, one after the other.

    The last has its weight of 1/2; the second 1/4 of the other half; the first 1/2 of what is left,
    1/2 * 3/4; and the old model keeps the rest.
    """
    ledger = Ledger.new(np.array([1, 1, 1]))
    ledger.version = 5
    whole, times = np.zeros(3, dtype=np.int64), np.zeros(3)
    reports = Reports(
        client=np.arange(3), start=times, version=np.array([5, 2, 5]), round=whole,
        local=whole > 0, invitation=whole, steps=whole, note=times, arrived=times, trained=times,
        used=whole,
    )  # fmt: skip
    merge = MixModels(0.5, PowerDamping(0.5))(ledger, reports)
    assert merge.coefficient.tolist() == [0.1875, 0.125, 0.5]
    assert merge.keep == 0.1875
    assert merge.of == "model"


@pytest.mark.parametrize(
    ("power", "models"),
    [
        (1.0, [0.25, 0.4375, 0.28125]),
        (0.0, [0.25, 0.4375, -0.03125]),
    ],
)
def test_models_of_late_clusters_count_less(power: float, models: list[float]) -> None:
    """Clients at 1 and -1, each a cluster, take 1 and 2.5; a step goes half of the way, from 0.

    The models that clusters report are 1/2 (at 1, from 0), (1/4 + 1) / 2 = 5/8 (at 2, from 1/4) and
    -1/2 (at 2.5, from 0, two updates old). Half of the first two is mixed in: 1/4, then 7/16. Of
    the third 1/2 with a power of 0: -1/32; and 1/2 / 3 with a power of 1: 5/6 * 7/16 - 1/12 = 9/32.
    """
    found = []
    for rounds in (1, 2, 3):
        policy = hierarchical(clusters=2, goal=1, mixing=0.5, power=power)
        history = cafe.simulate(taking(1.0, 2.5), policy, points([1.0, -1.0]), rounds=rounds)
        assert history.model is not None
        found.append(float(history.model[0]))
    assert history.by_round["closed"].tolist() == [1.0, 2.0, 2.5]
    assert found == pytest.approx(models)


def test_clusters_are_blocks_of_nearly_equal_size() -> None:
    who = cafe.Federation(8, cafe.Constant(1.0))
    clusters = hierarchical(clusters=3, goal=1).clusters(who)
    assert [each.tolist() for each in clusters.values()] == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_errors() -> None:
    who = cafe.Federation(5, cafe.Constant(1.0))
    with pytest.raises(InputError, match="clusters must be at most the number of clients"):
        cafe.simulate(who, hierarchical(clusters=6, goal=1), rounds=1)
    with pytest.raises(InputError, match="mixing must be at most 1"):
        hierarchical(clusters=6, goal=1, mixing=1.5)
    for deadline in (None, 1.0):
        policy = hierarchical(clusters=2, goal=3, deadline=deadline)
        with pytest.raises(InputError, match=r"goal must be at most .* smallest cluster \(2\)"):
            cafe.simulate(who, policy, rounds=1)
