"""Notes on runs that ended far below the others."""

from __future__ import annotations

from cafe.reproduce.findings import outlier_notes


def test_outliers_are_reported() -> None:
    rows = [{"m": m, "accuracy": 0.95} for m in (1, 2) for _ in range(5)]
    assert outlier_notes(rows, "m") == []
    (note,) = outlier_notes([*rows, {"m": 2, "accuracy": 0.7}], "m")
    assert "Of 11 runs 1 ended" in note
    assert "0.700" in note
