"""Groups of nearly equal clients, and plans that are searched on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.planner import deadline_search
from cafe.planner.client_groups import client_groups


def unequal(clients: int) -> cafe.Federation:
    rng = np.random.default_rng(1)
    return cafe.Federation(
        clients,
        cafe.LogNormal(mu=rng.normal(0, 0.7, clients), sigma=rng.uniform(0.2, 0.8, clients)),
        rng.uniform(0.5, 1.0, clients),
    )


def test_groups_have_all_clients_and_at_most_as_many_kinds() -> None:
    many = unequal(9000)
    few = client_groups(many, 1000)
    assert few.clients == 9000
    assert few.kinds <= 1000
    assert few.number.sum() == 9000
    assert few.number.max() <= 2 * few.number.min()


def test_few_kinds_stay_as_they_are() -> None:
    few = unequal(50)
    assert client_groups(few, 50) is few


def test_groups_of_repeated_kinds_count_clients() -> None:
    rng = np.random.default_rng(0)
    kind = np.concatenate([np.arange(300), rng.integers(0, 300, 5000)])
    who = cafe.Federation(5300, cafe.Exponential(np.linspace(0.5, 2, 300)), kind=kind)
    few = client_groups(who, 50)
    assert few.kinds == 50
    reports = [float(x.number @ x.report(0.7)) for x in (who, few)]
    assert reports[1] == pytest.approx(reports[0], rel=2e-3)


@pytest.mark.parametrize("prices", [{}, {"waste_price": 0.001, "broadcast_price": 10.0}])
def test_a_plan_on_groups_costs_hardly_more_than_the_best(
    monkeypatch: pytest.MonkeyPatch, prices: dict[str, Any]
) -> None:
    who = unequal(6000)
    best = cafe.plan(who, **prices)
    monkeypatch.setattr(deadline_search, "MANY_KINDS", 5000)
    made = cafe.plan(who, **prices)
    assert made.search.sketch is not made.search
    assert best.cost <= made.cost * (1 + 1e-9)
    assert made.cost <= best.cost * (1 + 1e-4)
    # The cost is that of all clients, not that of the groups.
    exact = replace(made.search).expect(made.quorum, made.deadline)
    assert made.cost == made.goal.cost(exact)
    assert made.good_deadlines == pytest.approx(best.good_deadlines, rel=0.1)


def test_a_plan_with_limits_is_searched_for_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline_search, "MANY_KINDS", 500)
    made = cafe.plan(unequal(600), at_most={"deadline": 1.0})
    assert made.search.sketch is made.search
    assert made.deadline == 1.0


def test_a_search_on_groups_evaluates_few_choices_of_all_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadline_search, "MANY_KINDS", 5000)
    seen: list[int] = []
    true = deadline_search.DeadlineSearch.expect

    def counted(self: deadline_search.DeadlineSearch, quorum: int, deadline: float) -> object:
        seen.append(self.federation.kinds)
        return true(self, quorum, deadline)

    monkeypatch.setattr(deadline_search.DeadlineSearch, "expect", counted)
    made = cafe.plan(unequal(6000))
    made.sensitivity()
    assert seen.count(6000) <= 60
    assert len(seen) > 300
