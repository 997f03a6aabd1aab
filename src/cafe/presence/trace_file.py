"""Read a trace from a CSV file, with error messages that name the line."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np

from cafe.errors import FileError, check_positive, did_you_mean
from cafe.files import read_text
from cafe.presence.trace import Trace, find_fault

COLUMNS = ("client", "from", "to")


def read_trace(path: str | Path, repeat: float | None = None) -> Trace:
    r"""Read a trace from a CSV file with the columns client, from and to, in any order.

    Args:
        path: the file. Each row below the first line is one window of one client.
        repeat: the period after which the windows repeat; if None, they do not.

    Example:
        >>> from pathlib import Path
        >>> from cafe.presence import read_trace
        >>> _ = Path("trace.csv").write_text("client,from,to\n0,0,10\n1,5,20\n")
        >>> read_trace("trace.csv").describe()
        'a trace of 2 windows'
    """
    if repeat is not None:
        repeat = check_positive("A trace's repeat", repeat)
    lines, windows = _rows(path)
    rows = np.array(windows)
    found = find_fault(rows, repeat)
    if found is not None:
        row, message, other = found
        also = "" if other is None else f" The other one is on line {lines[other]}."
        raise FileError(path, f"{message}{also}", lines[row])
    return Trace(rows, repeat)


def _rows(path: str | Path) -> tuple[list[int], list[tuple[float, float, float]]]:
    """The line numbers and the values of all rows; blank lines are skipped."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    lines: list[int] = []
    found: list[tuple[float, float, float]] = []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        client, start, end = _columns(path, header)
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise FileError(
                    path,
                    f"a row must have {len(header)} cells, one for each column. "
                    f"Got {len(row)}: add or remove commas.",
                    reader.line_num,
                )
            numbers = [_number(path, name, row, at, reader.line_num) for at, name in
                       ((client, "client"), (start, "from"), (end, "to"))]  # fmt: skip
            found.append((numbers[0], numbers[1], numbers[2]))
            lines.append(reader.line_num)
    except csv.Error as error:
        raise FileError(
            path, f"this is not valid CSV ({error}): correct the line.", reader.line_num
        ) from None
    if not found:
        raise FileError(
            path, "there must be at least one window below the first line. Got none: add a row."
        )
    return lines, found


def _columns(path: str | Path, header: list[str]) -> tuple[int, int, int]:
    """The positions of client, from and to."""
    if not header:
        raise FileError(path, "the first line must be client,from,to. Got an empty file.")
    for name in header:
        if name not in COLUMNS:
            raise FileError(
                path,
                "the first line must name the columns client, from and to, separated by commas. "
                f"Got '{name}'. {did_you_mean(name, COLUMNS)}",
                1,
            )
        if header.count(name) > 1:
            raise FileError(path, f"the column {name} appears twice: keep one of them.", 1)
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise FileError(path, f"the column {missing[0]} is missing: add it.", 1)
    return header.index("client"), header.index("from"), header.index("to")


def _number(path: str | Path, name: str, row: list[str], at: int, line: int) -> float:
    text = row[at].strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:  # Python would read 1_0 as 10
        raise FileError(path, f"{name} must be a finite number. Got '{row[at]}': correct it.", line)
    return number
