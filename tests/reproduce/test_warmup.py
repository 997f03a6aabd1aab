"""Totals after the warm-up."""

from __future__ import annotations

import pytest

import cafe
from cafe.reproduce.warmup import steady_totals, steady_trials


def test_ages_after_the_warm_up_agree_with_the_books() -> None:
    """With a warm-up of one round both have the same area but for that round's."""
    federation = cafe.Federation(20, cafe.Exponential(1.0))
    policy = cafe.policies.mcu(quorum=9, deadline=0.5)
    history = cafe.simulate(federation, policy, seed=3, rounds=50)
    trial = steady_trials("theory", {"quorum": 9, "deadline": 0.5, "warmup": 1}, [3], 49, {})
    (row,) = steady_totals(trial[0], history)
    # In round 0 every age grows from 0 to T.
    assert row["age"] * 24.5 + 0.5**2 / 2 == pytest.approx(history.mean_age * 25)
    assert row["rounds"] == 49
