"""The 90 % intervals of a plan contain the truth in about 90 % of cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cafe

pytestmark = pytest.mark.slow

FLEETS, CLIENTS, ROUNDS, DEADLINE = 30, 25, 40, 2.5
FIGURES = ("waste", "age", "worst_age", "expected_reports")


def test_intervals_cover_the_truth() -> None:
    """Log-normal fleets with offline clients, evaluated at a deadline within the observations."""
    hits = dict.fromkeys(FIGURES, 0)
    for seed in range(FLEETS):
        rng = np.random.default_rng(seed)
        latency = cafe.LogNormal(0.4 * rng.standard_normal(CLIENTS), 0.4)
        truth = cafe.Federation(CLIENTS, latency, float(rng.uniform(0.6, 1.0)))
        times = truth.sample(rng, ROUNDS)
        seconds = np.where(times <= DEADLINE, times, np.nan).ravel()
        seen = cafe.Observations(seconds, DEADLINE, np.tile(np.arange(CLIENTS), ROUNDS))
        fitted = cafe.fit(seen, families=["lognormal", "gamma"]).by_client().federation()
        found = cafe.plan(
            fitted,
            waste_price=1.0,
            broadcast_price=5.0,
            at_most={"deadline": 1.5},
            at_least={"deadline": 1.5},
        )
        true = cafe.expect(truth, quorum=found.quorum, deadline=found.deadline)
        for name in FIGURES:
            low, high = found.intervals[name]
            hits[name] += low <= getattr(true, name) <= high
    # Three standard errors of a share of 0.9 below it, and never more than a few misses too many.
    least = 0.9 - 3 * math.sqrt(0.9 * 0.1 / FLEETS)
    for name, count in hits.items():
        assert count / FLEETS >= least, (name, count)
    # Intervals that always contain the truth are too wide.
    total = sum(hits.values()) / (FLEETS * len(FIGURES))
    assert 0.8 <= total <= 0.99, hits
