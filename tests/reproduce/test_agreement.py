"""The chi-square rule, on measurements with known true values."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.analysis.statistics import Estimate, mean
from cafe.reproduce.agreement import Agreement, Comparison
from cafe.reproduce.claims import FAILS, IN_PART


def test_random_errors_pass_and_a_bias_does_not() -> None:
    rng = np.random.default_rng(5)

    def fit(bias: float) -> Agreement:
        drawn = 1 + bias + 0.01 * rng.standard_normal((40, 10))
        return Agreement.of([Comparison(mean(row), 1.0) for row in drawn])

    fair = [fit(0.0) for _ in range(200)]
    assert np.mean([one.chance < 0.05 for one in fair]) == pytest.approx(0.05, abs=0.045)
    assert np.mean([one.beyond / one.tests for one in fair]) == pytest.approx(0.0455, abs=0.01)
    assert fit(0.005).verdict(8) is IN_PART  # beyond chance, and too small to matter
    assert fit(0.02).verdict(8) is FAILS


def test_untested_comparison_does_not_hold() -> None:
    constant = Comparison(Estimate(1.0, 0.0, 5), 1.0, tested=False, constant=True)
    assert Agreement.of([constant]).verdict(1) is FAILS
    assert str(constant) == "1 ± 0, 1 (not tested)"
