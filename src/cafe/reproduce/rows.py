"""Rows of results: selecting, grouping and averaging them, and their CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from cafe.analysis.statistics import Estimate, mean, ratio

Row = dict[str, Any]  # numbers and texts by column
Rows = Sequence[Row]
SIGNIFICANT_DIGITS = 7  # of a float in a CSV file: more than standard errors require


def select(rows: Rows, **where: Any) -> list[Row]:
    """The rows that have these values in these columns."""
    return [row for row in rows if all(row.get(key) == value for key, value in where.items())]


def group(rows: Rows, *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by their values in some columns, in the order in which the values first appear."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups


def levels(rows: Rows, name: str) -> list[Any]:
    """The distinct values of a column, sorted; rows without the column are skipped."""
    return sorted({row[name] for row in rows if name in row})


def column(rows: Rows, name: str, **where: Any) -> list[Any]:
    """A column's values in the selected rows, ordered by seed."""
    return [row[name] for row in sorted(select(rows, **where), key=lambda row: row["seed"])]


def mean_of(rows: Rows, name: str, **where: Any) -> Estimate:
    """The mean of a column over the selected rows, with its standard error over the seeds."""
    return mean(column(rows, name, **where))


def ratio_of(rows: Rows, over: str, under: str, **where: Any) -> Estimate:
    """The ratio of the sums of two columns, with its standard error over the seeds."""
    return ratio(column(rows, over, **where), column(rows, under, **where))


def rows_to_csv(rows: Rows) -> str:
    """Rows as CSV text; floats are rounded to seven significant digits."""
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def rows_from_csv(text: str) -> list[Row]:
    """Rows from CSV text: numbers are parsed, and empty cells are left out."""
    return [
        {name: _value(cell) for name, cell in row.items() if cell != ""}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _cell(value: Any) -> Any:
    return f"{value:.{SIGNIFICANT_DIGITS}g}" if isinstance(value, float) else value


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
