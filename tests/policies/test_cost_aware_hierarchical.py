"""The assignment of clients to edge servers: by hand, and against all assignments."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe.errors import InfeasibleError, InputError
from cafe.policies import _association, cost_aware_hierarchical
from cafe.policies._association import cheapest
from tests.support.federations import taking
from tests.support.two_levels import points


def cost(servers: tuple[int, ...], times: list[float], links: list[float], energy: float) -> float:
    """The cost of an assignment, from its definition."""
    latency = spent = 0.0
    for server in {*servers}:
        mine = [time for time, its in zip(times, servers, strict=True) if its == server]
        latency = max(latency, max(mine) + links[server])
        spent += len(mine) * max(mine) + links[server]
    return latency + energy * spent


@settings(max_examples=150)
@given(
    times=st.lists(st.integers(1, 9).map(float), min_size=1, max_size=6),
    links=st.lists(st.integers(0, 6).map(float), min_size=1, max_size=3),
    energy=st.sampled_from([0.0, 0.05, 0.2, 1.0, 5.0]),
    spare=st.integers(0, 6),
)
def test_no_assignment_is_cheaper(
    times: list[float], links: list[float], energy: float, spare: int
) -> None:
    capacity = -(-len(times) // len(links)) + spare
    found = cheapest(np.array(times), np.array(links), energy, capacity).tolist()
    assert max(map(found.count, found)) <= capacity
    every = product(range(len(links)), repeat=len(times))
    allowed = [each for each in every if max(map(each.count, each)) <= capacity]
    least = min(cost(each, times, links, energy) for each in allowed)
    assert cost(tuple(found), times, links, energy) == pytest.approx(least)


@pytest.mark.parametrize(
    ("links", "capacity", "expected"),
    [
        # Two edge servers: 10 + 2 * 4 and two links are 22. With three: 17 and three links, 23.
        ([2.0, 2.0, 2.0], 9, [[0], [1, 2]]),
        # Two: 18 and two links are 19. Three: 17 and three links are 18.5.
        ([0.5, 0.5, 0.5], 9, [[0], [1], [2]]),
        # One: a latency of 12 and 30 + 2, in all 44. Two: 19 and 18 + 17, in all 54.
        ([2.0, 15.0], 9, [[0, 1, 2]]),
        # The slowest client has the fastest link. 10 | 4, 3 costs 11 + 26, and 10, 4 | 3 11 + 31.
        ([7.0, 1.0], 2, [[1, 2], [0]]),
    ],
)
def test_by_hand(links: list[float], capacity: int, expected: list[list[int]]) -> None:
    """Clients take 10, 4 and 3; a unit of energy costs as much as a unit of latency."""
    policy = cost_aware_hierarchical(edges=len(links), link=links, capacity=capacity)
    clusters = policy.clusters(taking(10.0, 4.0, 3.0)).values()
    assert [each.tolist() for each in clusters] == expected


@pytest.mark.parametrize(("energy", "expected"), [(1.0, [0, 1, 1, 1]), (0.25, [0, 0, 0, 0])])
def test_energy_and_latency_have_different_optima(energy: float, expected: list[int]) -> None:
    """Times 9, 5, 5 and 5, links 0 and 6.

    Together: energy 36, latency 9. The fast ones alone: energy 9 + 15 + 6 = 30, latency 11. At a
    price of 1 that is 45 and 41; at a price of 1/4, 18 and 18.5.
    """
    found = cheapest(np.array([9.0, 5.0, 5.0, 5.0]), np.array([0.0, 6.0]), energy, 4)
    assert found.tolist() == expected


def test_time_counts_updates_and_steps() -> None:
    """Client 2 takes 3 and 9 for each step, so it is the slowest one."""
    who = cafe.Federation.join(
        *(
            cafe.Federation(1, cafe.Constant(time), per_step=each)
            for time, each in ((10.0, 0.0), (4.0, 0.0), (3.0, 9.0))
        )
    )

    def groups(**given: int) -> list[list[int]]:
        policy = cost_aware_hierarchical(edges=2, **given)
        return [each.tolist() for each in policy.clusters(who).values()]

    # Times 10, 4 and 12: 12, 10 | 4 costs 24 + 4, and 12 | 10, 4 costs 12 + 20.
    assert groups() == [[0, 2], [1]]
    # Times 10, 4 and 21: 21, 10 | 4 costs 42 + 4, and 21 | 10, 4 costs 21 + 20.
    assert groups(steps=2) == [[2], [0, 1]]


def test_more_updates_make_the_time_of_links_less_important() -> None:
    """Clients take 10 and 4.

    One update and links of 5: one edge server costs 15 + 25 = 40, and two cost 15 + 24 = 39. With
    links of 7: 17 + 27 = 44 and 17 + 28 = 45. With two updates the times are 20 and 8, and the
    costs 27 + 47 = 74 and 27 + 42 = 69.
    """
    who = taking(10.0, 4.0)

    def servers(link: float, edge_updates: int) -> int:
        policy = cost_aware_hierarchical(edges=2, link=link, edge_updates=edge_updates)
        return len(policy.clusters(who))

    assert [servers(5.0, 1), servers(7.0, 1), servers(7.0, 2)] == [2, 1, 2]


def test_the_cloud_and_all_edge_servers_wait_for_all() -> None:
    """Clients take 10, 4 and 3, in two clusters; every round lasts 10 and averages 1, 5 and 9."""
    policy = cost_aware_hierarchical(edges=2)
    history = cafe.simulate(taking(10.0, 4.0, 3.0), policy, points([1, 5, 9]), rounds=2)
    assert history.by_round["closed"].tolist() == [10.0, 20.0]
    assert history.by_round["used"].tolist() == [3, 3]
    assert history.waste == 0
    assert history.client_seconds == 2 * 17
    assert history.model == pytest.approx([0.75 * 5])


def test_large_federations_are_fast_enough() -> None:
    who = cafe.Federation.exponential(np.linspace(0.5, 5.0, 400))
    clusters = cost_aware_hierarchical(edges=8, link=0.5).clusters(who)
    assert sum(map(len, clusters.values())) == 400


def test_links_of_different_speed_need_few_calculations(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a low price of energy, hundreds of latencies are possible: not all of them are tried."""
    rng, tried = np.random.default_rng(0), []
    exact = _association._least_energy

    def counted(busy: Any, link: Any, capacity: int, limit: float) -> Any:
        tried.append(limit)
        return exact(busy, link, capacity, limit)

    monkeypatch.setattr(_association, "_least_energy", counted)
    cheapest(rng.exponential(1.0, 150), rng.exponential(50.0, 8), 1e-4, 150)
    assert len(tried) < 40


def test_errors() -> None:
    who = taking(1.0, 2.0, 3.0)
    with pytest.raises(InputError, match="a capacity of 1 serve 2 clients, but there are 3"):
        cafe.simulate(who, cost_aware_hierarchical(edges=2, capacity=1), rounds=1)
    with pytest.raises(InputError, match=r"one for each of the 3 edge servers\. Got 2"):
        cost_aware_hierarchical(edges=3, link=[1.0, 2.0])
    with pytest.raises(InputError, match=r"link\[1\] must be a positive number"):
        cost_aware_hierarchical(edges=2, link=[1.0, -2.0])


def test_a_deadline_that_a_cluster_can_never_meet_is_explained() -> None:
    """Clients 3 to 5 take 20, and their edge server, cluster 0, waits only until 5."""
    who = taking(1.0, 1.0, 1.0, 20.0, 21.0, 22.0)
    policy = cost_aware_hierarchical(edges=2, deadline=5.0)
    with pytest.raises(InfeasibleError) as caught:
        cafe.simulate(who, policy, rounds=3, patience=7)
    message = str(caught.value)
    assert "Cluster 0 (clients 3, 4, 5) has given up: 7 rounds in a row have failed" in message
    assert "took 20 (client 3), and the last round lasted 5 and had 0 reports" in message
    assert "Lengthen the deadline of the clusters" in message
    assert "Give the policy a deadline" not in message


def test_all_clusters_that_have_given_up_are_named() -> None:
    policy = cost_aware_hierarchical(edges=3, link=0.1, deadline=0.5)
    with pytest.raises(InfeasibleError, match=r"Cluster 0 .* given up, as have clusters 1, 2: "):
        cafe.simulate(taking(1.0, 5.0, 25.0), policy, rounds=3, patience=2)
