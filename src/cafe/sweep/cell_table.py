"""All cells of a sweep as one table, in Parquet or CSV: the same cells give the same bytes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cafe.results.storage import write
from cafe.sweep.sweep_cell import CellResult
from cafe.sweep.sweep_file import Sweep


def cell_columns(sweep: Sweep, results: Sequence[CellResult]) -> dict[str, list[Any]]:
    """The columns of the table: the cell, its status, and its figures; None where there is none."""
    cells = [result.cell for result in results]
    columns: dict[str, list[Any]] = {"point": [cell.point for cell in cells]}
    for axis in sweep.axes:
        columns[axis.key] = _alike([cell.values[axis.key] for cell in cells])
    columns["policy"] = [cell.label for cell in cells]
    columns["seed"] = [cell.seed for cell in cells]
    columns["status"] = ["failed" if result.reason else "done" for result in results]
    columns["reason"] = [result.reason for result in results]
    for name in sweep.measure.figures:
        columns[name] = [_known(result.figures.get(name, math.nan)) for result in results]
    return columns


def write_parquet(path: Path, columns: dict[str, list[Any]]) -> None:
    """Write the table as Parquet, which needs pyarrow."""
    import pyarrow
    from pyarrow import parquet

    table = {
        name: pyarrow.array(column, type=_type(pyarrow, column)) for name, column in columns.items()
    }
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(table), buffer)
    write(path, buffer.getvalue())


def write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    """Write the table as CSV; what is not known is empty."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write(path, buffer.getvalue().encode())


def _alike(values: list[Any]) -> list[Any]:
    """The values of a key as one type: numbers, texts or booleans; otherwise as JSON texts."""
    kinds = {type(value) for value in values}
    if len(kinds) <= 1 and kinds <= {bool, int, float, str}:
        return values
    if kinds == {int, float}:
        return [float(value) for value in values]
    return [json.dumps(value, sort_keys=True, default=str) for value in values]


def _type(pyarrow: Any, column: list[Any]) -> Any:
    """The type of a column; one without any value has numbers."""
    return None if any(value is not None for value in column) else pyarrow.float64()


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
