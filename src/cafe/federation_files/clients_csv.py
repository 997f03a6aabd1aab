"""Read a federation from CSV, one row per client, with error messages that name the line."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cafe.errors import FileError, InputError, did_you_mean
from cafe.federation import Federation, Indices
from cafe.federation_files.evidence_lines import read_evidence, split_evidence
from cafe.federation_files.family_names import csv_families, families_by_name, parameters_of
from cafe.federation_files.plain_csv import CHUNK, plain_columns, read_number
from cafe.latency import Constant, Various
from cafe.latency.base import Family, Floats
from cafe.toml_tables.shapes import REQUIRED

T = TypeVar("T")

_OF_EVERY_FAMILY = {"availability", "examples", "per_step"}  # columns that any family may have


@dataclass(frozen=True)
class _Rows:
    """The columns of a CSV file, with one entry per client.

    Attributes:
        path: the file.
        lines: the line of each client.
        families: the family of each client, as an index into ``csv_families()``.
        numbers: the numeric columns by name; NaN is an empty cell.
    """

    path: Path
    lines: NDArray[np.intp]
    families: Indices
    numbers: dict[str, Floats]

    def error(self, row: int | np.intp, message: str) -> FileError:
        return FileError(self.path, message, int(self.lines[row]))


def load_csv(path: Path, text: str) -> Federation:
    """Build the federation described by the text of a CSV file; ``path`` is for error messages."""
    text, about = split_evidence(text)
    rows = _quick_columns(path, text) or _columns(path, _lines(path, text))
    evidence = None
    if about:
        evidence = read_evidence(path, about, text.count("\n") + 1, rows.lines.size)
    availability = _by_client(rows, "availability", 1.0)
    per_step = _by_client(rows, "per_step", 0.0)
    examples = _examples(rows)
    parts, order = _parts(rows)
    if len(parts) == 1:
        return Federation(
            rows.lines.size, parts[0], availability, examples, per_step=per_step, evidence=evidence
        )
    kind = np.empty_like(order)
    kind[order] = np.arange(order.size)
    share, pace = (x if isinstance(x, float) else x[order] for x in (availability, per_step))
    return Federation(
        rows.lines.size, Various(parts), share, examples, kind, per_step=pace, evidence=evidence
    )


def _lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of cells, each with its last line; blank lines are allowed only at the end."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    blank = 0
    try:
        for row in reader:
            if not row:
                blank = blank or reader.line_num
            elif blank:
                raise FileError(
                    path, "blank lines are allowed only at the end of the file: remove it.", blank
                )
            else:
                yield reader.line_num, row
    except csv.Error as error:
        raise FileError(
            path, f"this is not valid CSV ({error}): correct the line.", reader.line_num
        ) from None


def _quick_columns(path: Path, text: str) -> _Rows | None:
    """All rows if the file has no fault that the slow way would name; else None."""
    header = _header(path, next(_lines(path, text), (1, []))[1])
    codes = {name: code for code, name in enumerate(csv_families())}
    found = plain_columns(text, header, codes, "exponential")
    if found is None:
        return None
    lines = np.arange(2, found.families.size + 2)
    return _Rows(path, lines, found.families, found.numbers)


def _columns(path: Path, lines: Iterator[tuple[int, list[str]]]) -> _Rows:
    """All rows, converted in chunks: as text they need ten times the memory of numbers."""
    header = _header(path, next(lines, (1, []))[1])
    at: list[int] = []
    families: list[Indices] = []
    numbers: dict[str, list[Floats]] = {h: [] for h in header if h not in ("client", "family")}
    seen: dict[str, int] = {}
    while chunk := list(islice(lines, CHUNK)):
        own = [line for line, _ in chunk]
        columns = dict(zip(header, _transposed(path, len(header), chunk), strict=True))
        _check_unique(path, own, columns.get("client", ()), seen)
        families.append(_codes(path, own, columns.get("family", ("exponential",) * len(own))))
        for name, parts in numbers.items():
            parts.append(_numbers(path, own, name, columns[name]))
        at += own
    if not at:
        raise FileError(
            path, "there must be at least one client below the first line. Got none: add a row."
        )
    joined = {name: np.concatenate(parts) for name, parts in numbers.items()}
    return _Rows(path, np.array(at, dtype=np.intp), np.concatenate(families), joined)


def _header(path: Path, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    parameters = {name for family in csv_families().values() for name in parameters_of(family)}
    known = {"client", "family"} | _OF_EVERY_FAMILY | parameters
    if not header:
        raise FileError(
            path, "the first line must name the columns, such as rate. Got an empty file."
        )
    for name in header:
        if name not in known:
            raise FileError(
                path,
                "the first line must name the columns, separated by commas. "
                f"Got '{name}', which is not known. {did_you_mean(name, known)}",
                1,
            )
        if header.count(name) > 1:
            raise FileError(path, f"the column {name} appears twice: keep one of them.", 1)
    alone = [name for name in header if name in parameters - {"rate"}]
    if alone and "family" not in header:
        raise FileError(
            path, f"a file with the column {alone[0]} must have a column family: add one.", 1
        )
    if not {"rate", "family"} & set(header):
        raise FileError(
            path, "there must be a column rate or a column family. Got neither: add one.", 1
        )
    return header


def _transposed(
    path: Path, width: int, chunk: list[tuple[int, list[str]]]
) -> Iterator[tuple[str, ...]]:
    for line, row in chunk:
        if len(row) != width:
            raise FileError(
                path,
                f"a row must have {width} cell{'s' * (width > 1)}, one for each column. "
                f"Got {len(row)}: add or remove commas.",
                line,
            )
    return zip(*(row for _, row in chunk), strict=True)


def _check_unique(path: Path, lines: list[int], names: Sequence[str], seen: dict[str, int]) -> None:
    """Raise an error if a client has two rows. The names are used for nothing else."""
    for line, name in zip(lines, names, strict=False):
        first = seen.setdefault(name, line)
        if first != line:
            raise FileError(
                path,
                f"every client must have one row. Got '{name}' again, after line {first}: "
                "rename or remove one of them.",
                line,
            )


def _codes(path: Path, lines: list[int], cells: Sequence[str]) -> Indices:
    """Each row's family as an index into ``csv_families()``."""
    codes = {name: code for code, name in enumerate(csv_families())}
    names = [cell.strip() for cell in cells]
    try:
        return np.array([codes[name] for name in names], dtype=np.intp)
    except KeyError:
        line, name = next((n, c) for n, c in zip(lines, names, strict=True) if c not in codes)
    if name in families_by_name():
        advice = "Its parameters do not fit in a row: describe it in a TOML file instead."
    else:
        advice = did_you_mean(name, codes)
    raise FileError(path, f"there is no family '{name}' in CSV. {advice}", line)


def _numbers(path: Path, lines: list[int], column: str, cells: Sequence[str]) -> Floats:
    """The numbers in the cells; NaN for an empty cell."""
    try:
        return np.array([read_number(cell) for cell in cells])
    except ValueError:
        line, cell = next((n, c) for n, c in zip(lines, cells, strict=True) if not _is_number(c))
    raise FileError(path, f"{column} must be a finite number. Got '{cell}': correct it.", line)


def _is_number(cell: str) -> bool:
    try:
        read_number(cell)
    except ValueError:
        return False
    return True


def _by_client(rows: _Rows, column: str, default: float) -> float | Floats:
    """An optional column, which must be filled for all clients or for none."""
    given = _filled(rows, column)
    if given is None:
        return default
    everyone = np.arange(given.size)
    _build_or_name_row(rows, everyone, lambda i: _checked(given[i], **{column: given[i]}))
    return given


def _examples(rows: _Rows) -> int | NDArray[np.int64]:
    given = _filled(rows, "examples")
    if given is None:
        return 1
    odd = (given != np.floor(given)) | (np.abs(given) > 2**53)
    if odd.any():
        row = np.argmax(odd)
        raise rows.error(row, f"examples must be a whole number. Got {given[row]}: correct it.")
    examples = given.astype(np.int64)
    everyone = np.arange(given.size)
    _build_or_name_row(rows, everyone, lambda i: _checked(examples[i], examples=examples[i]))
    return examples


def _filled(rows: _Rows, column: str) -> Floats | None:
    values = rows.numbers.get(column)
    if values is not None and np.isnan(values).any():
        row = np.argmax(np.isnan(values))
        raise rows.error(
            row,
            f"{column} must be given for all clients or for none. Got an empty cell: fill it in.",
        )
    return values


def _checked(values: Any, **named: Any) -> Federation:
    """Build a federation with these values, whose checks then apply to them."""
    return Federation(np.size(values), Constant(1.0), **named)


def _parts(rows: _Rows) -> tuple[list[Family], Indices]:
    """One latency per family in the file, and the rows ordered by family."""
    parts: list[Family] = []
    order: list[Indices] = []
    for code, name in enumerate(csv_families()):
        own = np.flatnonzero(rows.families == code)
        if own.size:
            parts.append(_part(rows, own, name))
            order.append(own)
    return parts, np.concatenate(order)


def _part(rows: _Rows, own: Indices, name: str) -> Family:
    """The latency of the rows of one family."""
    family = csv_families()[name]
    shape = parameters_of(family)
    others = _OF_EVERY_FAMILY | shape.keys()
    for column in [name for name in rows.numbers if name not in others]:
        filled = ~np.isnan(rows.numbers[column][own])
        if filled.any():
            row = own[np.argmax(filled)]
            raise rows.error(row, f"{name} has no parameter {column}: leave the cell empty.")
    given: dict[str, Floats] = {}
    for column, (_, default) in shape.items():
        values = rows.numbers[column][own] if column in rows.numbers else np.full(own.size, np.nan)
        empty = np.isnan(values)
        if default is REQUIRED and empty.any():
            row = own[np.argmax(empty)]
            raise rows.error(
                row, f"{name} needs the parameter {column}. Got an empty cell: fill it in."
            )
        if not empty.all():
            given[column] = np.where(empty, default, values) if empty.any() else values
    return _build_or_name_row(rows, own, lambda i: family(**{k: v[i] for k, v in given.items()}))


def _build_or_name_row(rows: _Rows, own: Indices, build: Callable[[slice | int], T]) -> T:
    """What ``build`` returns for all rows; if it fails, an error that names the first bad row."""
    if _error(build, slice(None)) is None:
        return build(slice(None))
    # If building the rows up to the k-th fails, it also fails up to any later row: bisect.
    first = bisect_left(
        range(own.size), True, key=lambda k: _error(build, slice(k + 1)) is not None
    )
    raise rows.error(own[first], f"{_error(build, first)}")


def _error(build: Callable[[slice | int], object], rows: slice | int) -> InputError | None:
    try:
        build(rows)
    except InputError as error:
        return error
    return None
