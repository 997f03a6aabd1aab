"""The columns of a CSV file without faults, read quickly.

A file with a fault is left to :mod:`cafe.federation_files.clients_csv`, which reads line by line
and can name the line. Both give the same numbers.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cafe.federation import Indices
from cafe.latency.base import Floats

CHUNK = 2_000  # rows of a CSV file held as text at a time, few enough for the processor's cache


@dataclass(frozen=True, eq=False)
class PlainColumns:
    """The columns of a file in which every row is one line, and no cell has a fault.

    Attributes:
        families: the family of each client, as a number.
        numbers: the numeric columns by name; NaN is an empty cell.
    """

    families: Indices
    numbers: dict[str, Floats]


def plain_columns(
    text: str, header: Sequence[str], codes: Mapping[str, int], default: str
) -> PlainColumns | None:
    r"""The columns below the first line; None if the file may have a fault.

    Args:
        text: the file.
        header: the names of the columns.
        codes: the number of each family.
        default: the family of all clients if there is no column ``family``.

    Example:
        >>> from cafe.federation_files.plain_csv import plain_columns
        >>> plain_columns("rate\n1.5\n2\n", ["rate"], {"exponential": 0}, "exponential").numbers
        {'rate': array([1.5, 2. ])}
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    parts: dict[str, list[Floats]] = {h: [] for h in header if h not in ("client", "family")}
    families: list[Indices] = []
    names: set[str] = set()
    clients = 0
    try:
        next(reader, None)
        first = reader.line_num
        while rows := list(islice(reader, CHUNK)):
            # Strict: a row of another length is a fault. So is a blank line, which has no cells.
            columns = dict(zip(header, zip(*rows, strict=True), strict=True))
            names.update(columns.get("client", ()))
            clients += len(rows)
            families.append(_codes(columns.get("family"), len(rows), codes, default))
            for name, found in parts.items():
                found.append(_numbers(columns[name]))
    except (csv.Error, ValueError, KeyError):
        return None
    one_line_each = first == 1 and reader.line_num == clients + 1
    unique = "client" not in header or len(names) == clients
    if not (clients and one_line_each and unique):
        return None
    numbers = {name: np.concatenate(found) for name, found in parts.items()}
    return PlainColumns(np.concatenate(families), numbers)


def _codes(
    cells: Sequence[str] | None, rows: int, codes: Mapping[str, int], default: str
) -> Indices:
    if cells is None:
        return np.full(rows, codes[default], dtype=np.intp)
    return np.array([codes[cell.strip()] for cell in cells], dtype=np.intp)


def _numbers(cells: Sequence[str]) -> Floats:
    """The numbers in the cells; NaN for an empty cell. Raises ValueError if one is none."""
    try:
        found = np.array(list(map(float, cells)))
    except ValueError:  # an empty cell, or a fault
        return np.array([read_number(cell) for cell in cells])
    if not np.isfinite(found).all() or "_" in "".join(cells):
        raise ValueError
    return found


def read_number(cell: str) -> float:
    """The number in a cell; NaN if the cell is empty. Raises ValueError if it is not finite.

    Example:
        >>> from cafe.federation_files.plain_csv import read_number
        >>> read_number(" 1.5"), read_number(" ")
        (1.5, nan)
    """
    text = cell.strip()
    if not text:
        return math.nan
    found = float(text)
    if not math.isfinite(found) or "_" in text:  # Python would read 1_0 as 10
        raise ValueError
    return found
