"""Bounds are judged by measured gaps."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.reproduce.claims import FAILS, HOLDS
from cafe.reproduce.experiments import convergence_bound
from cafe.reproduce.rows import rows_from_csv, rows_to_csv
from tests.support.reproductions import verdict

pytestmark = pytest.mark.usefixtures("small_images")


def test_verdicts_on_bounds_follow_the_measurements() -> None:
    """On small images, where runs are quick: bounds are valid, but not for larger gaps."""
    rows = convergence_bound._constants(convergence_bound.L2)
    for t in (0.1, 0.5):
        for seed in range(2):
            rows += convergence_bound._run(
                convergence_bound.BoundPoint(convergence_bound.L2, t), seed, 30
            )
    found = convergence_bound.conclude(rows_from_csv(rows_to_csv(rows)))
    assert verdict(found, "Theorem 3 bounds the gap") is HOLDS
    assert verdict(found, "the corrected theorem bounds") is HOLDS
    large = [{**row, "gap": row["gap"] * 1e6} if "gap" in row else row for row in rows]
    assert verdict(convergence_bound.conclude(large), "Theorem 3 bounds the gap") is FAILS
    for draw in found.pictures.values():
        assert draw().axes


def test_gaps_of_the_objective_decrease() -> None:
    rows = convergence_bound._run(convergence_bound.BoundPoint(convergence_bound.L2, 0.5), 0, 40)
    gaps = [row["gap"] for row in rows]
    assert rows[-1]["round"] == 40
    assert gaps[0] < np.log(10)  # the loss of the start, which knows nothing
    assert 0 < gaps[-1] < 0.5 * gaps[0]
