"""The task with known constants, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.reproduce.experiments import corrections_age
from cafe.reproduce.gap_predictions import CORRECTED, PRINTED, PRINTED_AGE

pytestmark = pytest.mark.slow


def test_runs_start_at_the_optimum_with_heterogeneity_or_noise_alone() -> None:
    apart, alike = (cafe.measure(corrections_age.task(which)) for which in (True, False))
    assert apart.distance == pytest.approx(0, abs=1e-10)
    assert alike.distance == pytest.approx(0, abs=1e-10)
    assert apart.end.dissimilarity > 5 * apart.noise
    assert alike.end.dissimilarity < 1e-10 * alike.noise


@pytest.mark.slow
def test_gap_is_below_the_corrected_bound_and_decreases_with_the_deadline() -> None:
    gaps = {
        t: np.mean(
            [
                corrections_age._run(corrections_age.NAME, True, 1, t, seed, 150)[0]["gap"]
                for seed in range(6)
            ]
        )
        for t in (0.05, 2.0)
    }
    assert gaps[0.05] > 20 * gaps[2.0]  # 109 by theory, 17.7 by Corollary 3, 1 by Theorem 3
    said = corrections_age._bounds(corrections_age._constants()[0], [*gaps], 150)
    for t, gap in gaps.items():
        assert gap < said[CORRECTED][t] < said[PRINTED][t] < said[PRINTED_AGE][t]
