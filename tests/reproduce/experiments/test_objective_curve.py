"""The turning points of the objective, and searches for its least value."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.reproduce.experiments import objective_curve
from cafe.reproduce.rows import Row
from tests.support.reproductions import quick_rows

pytestmark = pytest.mark.slow


def test_turning_points_of_the_objective() -> None:
    found = [
        (row["kind"], row["x"], row["J"]) for row in quick_rows("fig-objective") if _turns(row)
    ]
    assert [kind for kind, _, _ in found] == ["minimum", "maximum", "minimum"]
    assert np.allclose([x for _, x, _ in found], [0.0433, 1.003, 8.521], rtol=2e-3)
    assert np.allclose([j for _, _, j in found], [160.85, 469.96, 114.48], atol=0.01)


def _turns(row: Row) -> bool:
    return row["kind"] in ("minimum", "maximum")


def test_the_terms_add_up_to_the_objective() -> None:
    for row in quick_rows("fig-objective"):
        if row["kind"] == "curve":
            assert sum(row[part] for part in objective_curve.PARTS) == pytest.approx(
                row["J"], rel=1e-5
            )
            assert row["early"] <= row["J"] * (1 + 1e-6)


def test_price_at_which_the_two_minima_are_equal() -> None:
    (row,) = [row for row in quick_rows("fig-objective") if row["kind"] == "tie"]
    assert row["weight"] == pytest.approx(2.009, abs=1e-3)
    lows = {r["weight"]: r for r in quick_rows("fig-objective") if r["kind"] == "basins"}
    assert "x_last" not in lows[0.1]
    assert lows[2.0]["J"] < lows[2.0]["J_last"]
    assert lows[5.0]["J"] > lows[5.0]["J_last"]


def test_second_derivatives_are_right() -> None:
    """Compared with those of x exp(-x), which the term of the waste tends to for large N x."""
    found = objective_curve.curvatures(1.0)
    assert found["bend_waste"] == pytest.approx(-50 * np.exp(-1.0), rel=1e-4)
    assert objective_curve.convex_up_to() == pytest.approx(0.0033, abs=5e-4)


def test_searches_over_a_short_range_end_in_the_wrong_basin() -> None:
    rows = quick_rows("fig-objective")
    by_range = {row["to"]: row["x"] for row in rows if row["kind"] == "range"}
    assert by_range[4.0] < 0.1
    assert by_range[10.0] == pytest.approx(8.52, abs=0.01)
    for row in rows:
        if row["kind"] == "descent":
            end = 0.0433 if row["from"] < 1.003 else 8.521
            assert row["x"] == pytest.approx(end, rel=1e-3)
