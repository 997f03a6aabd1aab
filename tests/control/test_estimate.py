"""Estimates from censored response times, and the plans that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.control.estimate import EstimatedClients, estimate
from cafe.control.longer_rounds import longer_round, silent_clients
from cafe.control.pool_posterior import draw_posterior
from cafe.control.recent_rounds import RecentRounds
from cafe.control.robust_plan import robust_plan
from cafe.control.tuner_state import TunerState
from cafe.fitting import Observations
from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.client_likelihood import ClientSums
from cafe.planner import Prices, ToAccuracy
from cafe.planner.limits import build_limits


def recent(
    who: cafe.Federation, rounds: int, deadline: float, offline: float = 0.0, skip: int = 0
) -> RecentRounds:
    """What a server sees of some rounds; requests to offline clients are missed deadlines."""
    rng = np.random.default_rng(5)
    times = who.sample(rng, rounds)
    times[rng.random(times.shape) < offline] = np.inf
    seconds = np.where(times <= deadline, times, np.nan).ravel()
    names = np.tile(np.arange(who.clients).astype(str), rounds).tolist()
    seen = Observations(seconds[skip:], deadline, names[skip:])
    return RecentRounds.of(seen, (who.clients,) * (rounds - bool(skip)))


SPREAD = np.exp(0.8 * np.random.default_rng(6).standard_normal(60))
UNEQUAL = cafe.Federation(60, cafe.Gamma(shape=3.0, scale=SPREAD))


def test_speeds_of_clients_are_estimated_also_if_the_log_begins_in_a_round() -> None:
    for skip in (0, 25):
        rows = recent(UNEQUAL, 12, 6.0, skip=skip)
        found = estimate(rows).federation
        order = [int(name) for name in rows.names]
        for t in (2.0, 4.0, 6.0):
            true = np.asarray(UNEQUAL.latency.cdf(t))[order]
            error = np.asarray(found.latency.cdf(t)) - true
            assert np.sqrt(np.mean(error**2)) < 0.1


def test_offline_clients_are_told_from_slow_ones() -> None:
    who = cafe.Federation(50, cafe.Weibull(shape=2.0, scale=1.0))
    found = estimate(recent(who, 20, 4.0, offline=0.4)).federation
    assert float(np.mean(found.availability)) == pytest.approx(0.6, abs=0.04)
    found = estimate(recent(who, 20, 0.7)).federation
    assert float(np.mean(found.availability)) > 0.8


def test_draws_surround_the_truth() -> None:
    rng = np.random.default_rng(7)
    u = 0.6 * rng.standard_normal(80)
    u *= 0.6 / u.std()
    u -= u.mean()
    times = np.exp(u + 0.5 * rng.standard_normal((10, 80)))
    seconds = np.where(times < 1.2, times, np.nan).ravel()
    seen = Observations(seconds, 1.2, np.tile(np.arange(80).astype(str), 10).tolist())
    sample = CensoredSample.of(seen, by_client=True)
    pools = [each.pool for each in draw_posterior(ClientSums.of(sample, 80), 20)]
    medians = [float(pool.latency.quantile(0.5)) for pool in pools]
    spreads = [pool.spread for pool in pools]
    assert min(medians) < 1.0 < max(medians)
    assert min(spreads) - 0.1 < 0.6 < max(spreads) + 0.1
    one = Observations(seconds[:80], 1.2, [f"{k}" for k in range(80)])
    sample = CensoredSample.of(one, by_client=True)
    unsure = [each.pool.spread for each in draw_posterior(ClientSums.of(sample, 80), 20)]
    assert np.std(unsure) > 2 * np.std(spreads)


@pytest.mark.parametrize("goal", [ToAccuracy(overhead=0.5), Prices(0.5, 2.0)])
def test_a_known_federation_gets_the_planners_plan(goal: ToAccuracy | Prices) -> None:
    who = cafe.Federation(60, cafe.LogNormal(mu=np.log(SPREAD), sigma=0.5))
    best = cafe.plan(who, goal=goal)
    made = robust_plan(EstimatedClients(who, (), 5.0), goal, ())
    assert made.cost == pytest.approx(best.cost, rel=0.02)
    limits = build_limits({"deadline": 0.8}, None)
    assert robust_plan(EstimatedClients(who, (), 5.0), goal, limits).deadline <= 0.8


def test_alternatives_move_the_plan_and_may_ask_for_a_longer_round() -> None:
    fast = cafe.Federation(50, cafe.Exponential(1.0))
    slow = cafe.Federation(50, cafe.Exponential(0.2))
    goal = ToAccuracy(overhead=0.5)
    rows = recent(fast, 6, 1.3)
    alone = robust_plan(EstimatedClients(fast, (fast,) * 4, 1.3), goal, ())
    mixed = robust_plan(EstimatedClients(fast, (fast, fast, slow, slow), 1.3), goal, ())
    assert alone.deadline < mixed.deadline
    assert alone.regret_of_longer < 0.01 < mixed.regret_of_longer
    assert longer_round(alone, rows, TunerState(counts=(50,) * 6)) is None
    longer = longer_round(mixed, rows, TunerState(counts=(50,) * 6))
    assert longer is not None
    assert longer.deadline > 1.3
    spent = TunerState(counts=(50,) * 6, extra=10.0)
    assert longer_round(mixed, rows, spent) is None


def test_silent_clients_are_waited_for_twice() -> None:
    scale = np.repeat([0.3, 30.0], [40, 10])
    rows = recent(cafe.Federation(50, cafe.Gamma(shape=4.0, scale=scale)), 4, 3.0)
    assert silent_clients(rows) == 10
    made = robust_plan(estimate(rows), ToAccuracy(overhead=0.5), ())
    longer = longer_round(made, rows, TunerState(counts=(50,) * 4))
    assert longer is not None
    assert longer.silent == 10
    assert "10 of 50 clients" in longer.reason
    tired = TunerState(counts=(50,) * 4, fruitless=2)
    again = longer_round(made, rows, tired)
    assert again is None or "have not reported" not in again.reason
