"""The search: its bounds never exclude an optimum, its grid sees every basin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import InfeasibleError
from cafe.federation import Federation
from cafe.latency import Empirical, Exponential, LogNormal, Mixture
from cafe.planner import Prices
from cafe.planner.deadline_grid import deadline_range
from cafe.planner.deadline_search import DeadlineSearch


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 200), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e4))
@pytest.mark.slow
def test_bounds_contain_the_optimum(
    clients: int, rate: float, waste_price: float, broadcast_price: float
) -> None:
    who = Federation(clients, Exponential(rate))
    search = DeadlineSearch(who, Prices(waste_price, broadcast_price))
    low, high = search.deadlines
    wide = deadline_range(who)
    best = min(
        (o for t in np.geomspace(*wide, 400) if (o := search.at(float(t)))), key=lambda o: o.cost
    )
    assert low * 0.95 <= best.deadline <= high * 1.05


def test_observed_times_do_not_create_many_basins() -> None:
    times = np.random.default_rng(0).exponential(1.0, 300)
    stairs = DeadlineSearch(Federation(50, Empirical(times)), Prices(20, 100)).optima()
    smooth = DeadlineSearch(Federation(50, Exponential(1.0)), Prices(20, 100)).optima()
    assert 1 <= len(stairs) <= len(smooth) + 2
    assert stairs[0].deadline in times


def test_infeasible_quorum_is_explained() -> None:
    who = Federation(3000, Exponential(1.0), availability=0.5)
    with pytest.raises(InfeasibleError, match="No round can succeed with the quorum 3000"):
        DeadlineSearch(who, Prices(1, 1), quorum=3000).optima()


@pytest.mark.slow
def test_plateau_ends_where_a_longer_deadline_gains_nothing() -> None:
    who = Federation(50, Exponential(1.0))
    best, *_ = DeadlineSearch(who, Prices(20, 100), close_when_all=True).optima()
    longest = DeadlineSearch(who, Prices(20, 100), close_when_all=True).at(100.0)
    assert longest is not None
    assert best.deadline < 30
    assert best.cost == pytest.approx(longest.cost, rel=2e-6)


@pytest.mark.parametrize("clients", [10**3, 10**6])
def test_deadlines_beyond_the_tail_of_one_client(clients: int) -> None:
    """If all clients are needed, the slowest of many decides, far in the tail of the latency."""
    who = Federation(clients, Exponential(1.0))
    search = DeadlineSearch(who, Prices(1, 1), quorum=clients)
    best, *_ = search.optima()
    for deadline in np.linspace(0.8, 1.3, 21) * best.deadline:
        other = search.at(float(deadline))
        assert other is None or other.cost >= best.cost * (1 - 1e-9)


@pytest.mark.slow
def test_narrow_components_are_not_overlooked() -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        parts = [LogNormal(m, 10 ** rng.uniform(-3, -1)) for m in rng.uniform(0, 3.5, 3)]
        who = Federation(
            int(rng.integers(1, 20)), Mixture(parts, rng.dirichlet(np.ones(3)).tolist())
        )
        search = DeadlineSearch(who, Prices(10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-2, 2)))
        best, *_ = search.optima()
        tried = (search.at(float(t)) for t in best.deadline * np.geomspace(0.05, 20, 1500))
        assert best.cost <= min(o.cost for o in tried if o) * (1 + 1e-6)
