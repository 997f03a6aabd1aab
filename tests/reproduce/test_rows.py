"""Rows: their file, and columns selected from them."""

from __future__ import annotations

from cafe.analysis.statistics import Estimate
from cafe.reproduce.rows import (
    Row,
    column,
    group,
    levels,
    mean_of,
    ratio_of,
    rows_from_csv,
    rows_to_csv,
    select,
)


def test_rows_survive_writing_and_reading() -> None:
    rows: list[Row] = [
        {"policy": "mcu", "share": 0.05, "seed": 0, "accuracy": 1 / 3},
        {"policy": "awu", "share": 0.3, "seed": 1},
    ]
    again = rows_from_csv(rows_to_csv(rows))
    assert again == [rows[0] | {"accuracy": 0.3333333}, rows[1]]
    assert rows_from_csv(rows_to_csv(again)) == again


def test_columns_are_sorted_by_seed() -> None:
    rows = [{"m": m, "seed": s, "a": 10 * m + s} for s in (2, 0, 1) for m in (1, 2)]
    assert column(rows, "a", m=2) == [20, 21, 22]
    assert mean_of(rows, "a", m=2) == Estimate(21.0, 1 / 3**0.5, 3)
    assert ratio_of(rows, "a", "m", m=2).mean == 63 / 6


def test_rows_are_selected_and_grouped() -> None:
    rows: list[Row] = [{"m": 2, "x": "a"}, {"m": 1, "x": "a"}, {"m": 2, "x": "b"}, {"x": "c"}]
    assert select(rows, m=2, x="b") == [rows[2]]
    assert select(rows, m=3) == []
    assert levels(rows, "m") == [1, 2]
    assert group(rows[:3], "m") == {(2,): [rows[0], rows[2]], (1,): [rows[1]]}
