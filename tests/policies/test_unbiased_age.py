"""Inverse participation by age: every client counts 1/N per round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import awu, mcu, unbiased_age

RATES = np.array([0.02, 0.1, 0.3, 1.0, 3.0])
UNEQUAL = cafe.Federation.exponential(RATES, None)


@pytest.mark.parametrize("options", [{}, {"quorum": 2}, {"cohort": 3}, {"steps": 2}])
def test_coefficients_of_a_client_add_up_to_its_last_round(options: dict[str, Any]) -> None:
    """If it was merged in rounds 3, 4 and 9, they are 3/N, 1/N and 5/N, together 9/N."""
    run = Run(UNEQUAL, unbiased_age(deadline=1.0, **options), seed=3, crash=0.1)
    for _ in range(300):
        run.step()
        expected = (run.ledger.last_round + 1) / 5
        np.testing.assert_allclose(run.history().weight_by_client, expected)


def test_mean_coefficient_of_every_client_is_one_nth() -> None:
    """Within five standard errors, from 40 independent runs of 400 rounds.

    Client k reports with the probability p = 1 - exp(-rate). The rounds since its last report are
    missing, so the mean is below 1/N by at most (1 - p) / p / 400 / N, which is added.
    """
    policy = unbiased_age(deadline=1.0)
    runs = [cafe.simulate(UNEQUAL, policy, rounds=400, seed=seed) for seed in range(40)]
    means = np.array([run.weight_by_client / 400 for run in runs])
    p = 1 - np.exp(-RATES)
    expected = (1 - (1 - p) / p / 400 * (1 - (1 - p) ** 400)) / 5
    error = means.std(axis=0, ddof=1) / np.sqrt(40)
    assert np.all(np.abs(means.mean(axis=0) - expected) < 5 * error + 1e-12)
    assert np.all(np.abs(means.mean(axis=0) - 1 / 5) < 0.2 / 5)
    averaged = cafe.simulate(UNEQUAL, mcu(quorum=1, deadline=1.0), rounds=400).weight_by_client
    assert averaged[0] < 0.1 * averaged[-1]  # the mean of reports favours fast clients


def test_scheme_is_an_option_of_awu() -> None:
    mine = cafe.simulate(UNEQUAL, unbiased_age(deadline=0.7, cohort=3), rounds=50)
    other = cafe.simulate(UNEQUAL, awu(deadline=0.7, cohort=3, weight="unbiased"), rounds=50)
    assert mine.weight_by_client.tolist() == other.weight_by_client.tolist()
    assert mine.by_round["closed"].tolist() == other.by_round["closed"].tolist()
