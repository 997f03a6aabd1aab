"""The default goal: its optimum by calculus, its trimmed mean by a loop, sensible plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import cafe
from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential, LogNormal, Weibull
from cafe.planner import ToAccuracy, plan, pooled_quantile
from cafe.planner.to_accuracy import IDLE, trimmed_inverse
from cafe.theory import expect

RNG = np.random.default_rng(5)
SPREAD = np.log(8.0) + 0.5 * RNG.standard_normal(60)

# Fleets on which the plan without prices must be sensible: the table of decision 14.
FLEETS = {
    "10 equal": Federation(10, Exponential(1.0)),
    "100 equal": Federation(100, Exponential(1.0)),
    "1000 equal": Federation(1000, Exponential(1.0)),
    "phones": cafe.phones(200, seed=7),
    "spread": Federation(60, LogNormal(SPREAD, np.full(60, 0.35))),
    "offline": Federation(60, LogNormal(SPREAD, np.full(60, 0.35)), availability=0.8),
    "two speeds": Federation.exponential([1.0] * 80 + [0.1] * 20),
    "half slow": Federation(100, LogNormal(np.repeat([0.0, np.log(10)], 50), np.full(100, 0.3))),
    "few very slow": Federation(
        100, LogNormal(np.r_[np.zeros(95), np.full(5, np.log(100.0))], np.full(100, 0.3))
    ),
    "heavy tail": Federation(100, LogNormal(0.0, 2.0)),
    "heavier tail": Federation(100, Weibull(0.5, 1.0)),
    "5000": Federation(
        5000, LogNormal(RNG.normal(2.0, 0.8, 5000), np.full(5000, 0.4)), RNG.uniform(0.3, 1, 5000)
    ),
    "one": Federation(1, Exponential(1.0)),
}


@pytest.mark.parametrize("who", FLEETS.values(), ids=FLEETS.keys())
@pytest.mark.slow
def test_default_plan_is_never_degenerate(who: Federation) -> None:
    made = plan(who)
    reach = float(np.sum(who.number * np.broadcast_to(who.availability, who.kinds)))
    share = made.expected.expected_reports / reach
    assert 0.3 < share < 0.99
    assert made.expected.success_probability > 0.7
    assert made.deadline < pooled_quantile(who, 0.97)
    if who.clients >= 10:
        assert made.quorum <= made.expected.expected_reports / 2
        assert made.expected.success_probability >= 0.999
    low, high = made.good_deadlines
    assert low < made.deadline < high
    # Half as fast as assumed: the quorum must not make it worse than it is anyway.
    slow = who.scaled(2.0)
    with_quorum, without = (
        made.goal.cost(expect(slow, quorum=m, deadline=made.deadline)) for m in (made.quorum, 1)
    )
    assert with_quorum <= 1.02 * without


@pytest.mark.parametrize(("ratio", "overhead"), [(1.0, None), (0.3, 0.2), (4.0, 0.5)])
def test_optimum_for_equal_clients(ratio: float, overhead: float | None) -> None:
    """(T + h) ((1 + s) / p - 1) with p = 1 - exp(-T) is least where its derivative is 0."""
    h = 0.5 * np.log(2) if overhead is None else overhead

    def slope(t: float) -> float:
        p, dp = -np.expm1(-t), np.exp(-t)
        return float(((1 + ratio) / p - 1) - (t + h) * (1 + ratio) * dp / p**2)

    best = brentq(slope, 1e-3, 20)
    given = None if ratio == 1.0 else ratio
    goal = ToAccuracy(noise_ratio=given, overhead=overhead)
    made = plan(Federation(100, Exponential(1.0)), goal=goal)
    assert made.deadline == pytest.approx(best, rel=1e-4)
    p = -np.expm1(-best)
    assert made.cost == pytest.approx((best + h) * ((1 + ratio) / p - 1) / ratio, rel=1e-4)


def test_cost_is_the_least_over_deadlines() -> None:
    who = FLEETS["two speeds"]
    made = plan(who)
    for deadline in np.geomspace(made.deadline / 30, made.deadline * 30, 200):
        other = made.goal.cost(expect(who, quorum=1, deadline=float(deadline)))
        assert other >= made.cost * (1 - 1e-6)


def test_client_seconds_are_work_and_waiting() -> None:
    who = Federation(40, Exponential(1.0))
    goal = ToAccuracy("client-seconds", noise_ratio=1.0, overhead=0.2)
    p = -np.expm1(-1.5)
    each = p + IDLE * 1.5 + 0.2  # E[min(X, T)] = p for rate 1
    cost = goal.cost(expect(who, quorum=1, deadline=1.5))
    assert cost == pytest.approx(40 * each * (2 / p - 1), rel=1e-9)
    assert plan(who, goal="client-seconds").deadline > plan(who, goal="time").deadline


@pytest.mark.parametrize("seed", range(5))
def test_trimmed_mean_equals_a_loop_over_clients(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = rng.integers(1, 7, 9)
    share = rng.uniform(0.01, 1.0, 9)
    clients = sorted((1 / p for n, p in zip(number, share, strict=True) for _ in range(n)))
    keep = 0.9 * len(clients)
    whole = int(keep)
    wanted = (sum(clients[:whole]) + (keep - whole) * clients[min(whole, len(clients) - 1)]) / keep
    assert trimmed_inverse(number.astype(float), share) == pytest.approx(wanted, rel=1e-12)


def test_a_tenth_of_the_clients_may_never_report() -> None:
    share, number = np.array([0.5, 0.0]), np.array([90.0, 10.0])
    assert trimmed_inverse(number, share) == pytest.approx(2.0)
    assert trimmed_inverse(np.array([89.0, 11.0]), share) == np.inf


def test_default_equals_its_values() -> None:
    who = FLEETS["spread"]
    h = 0.5 * pooled_quantile(who, 0.5)
    explicit = plan(who, goal=ToAccuracy("time", 1.0, h))
    assert plan(who).local_optima == explicit.local_optima == plan(who, goal="time").local_optima


def test_time_units_do_not_matter() -> None:
    who = FLEETS["spread"]
    made, scaled = plan(who), plan(who.scaled(60.0))
    assert scaled.deadline == pytest.approx(60 * made.deadline, rel=1e-4)
    assert scaled.quorum == made.quorum


def test_bad_values_are_refused() -> None:
    wrong: Any = "tme"
    with pytest.raises(InputError, match="Did you mean 'time'"):
        ToAccuracy(wrong)
    for ratio in (0.0, -1.0, np.inf, np.nan, "1"):
        bad: Any = ratio
        with pytest.raises(InputError, match="noise ratio must be"):
            ToAccuracy(noise_ratio=bad)
    for overhead in (-1.0, np.inf, "x"):
        bad = overhead
        with pytest.raises(InputError, match="overhead must be"):
            ToAccuracy(overhead=bad)
