"""The formats of a log: files, data frames, dictionaries and lists, read as columns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import FileError, InputError
from cafe.files import decode_text, read_bytes
from cafe.fitting.log_csv import delimited_log
from cafe.fitting.log_table import Column, LogTable, check_unique, in_chunks


def open_log(source: object) -> LogTable | None:
    """The log at a path or in a data frame, a dictionary of columns or a list of dictionaries.

    None if it is none of these.
    """
    if isinstance(source, str | Path):
        return _file(source)
    if isinstance(source, Mapping):
        return _columns("the dictionary", {str(k): v for k, v in source.items()})
    if isinstance(source, list) and source and all(isinstance(row, dict) for row in source):
        return _records("the list", source, lambda row: f"entry {row}")
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        raise InputError(
            "A log must be a data frame with its rows. Got a lazy frame: pass frame.collect()."
        )
    if hasattr(source, "column_names") and hasattr(source, "schema"):  # a pyarrow table
        return _columns("the table", {name: source[name] for name in source.column_names})  # type: ignore[index]
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        return _frame(source)
    return None


def _file(path: str | Path) -> LogTable:
    """A file, whose format is recognised by its first bytes."""
    data = read_bytes(path)
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise FileError(path, f"the file is not complete gzip data: {error}.") from None
    if data[:4] == b"PAR1":
        return _parquet(path, data)
    if data[:2] == b"PK":
        raise FileError(
            path, "this is a zip archive or an Excel sheet. Save the sheet as CSV, or unpack it."
        )
    text = decode_text(path, data)
    if not text.strip():
        raise FileError(path, "the first line must name the columns. Got an empty file.")
    if text.lstrip()[0] in "[{":
        return _json(path, text)
    return delimited_log(path, text.rstrip())  # blank lines are allowed only at the end


# JSON.


def _json(path: str | Path, text: str) -> LogTable:
    """An array of objects, an object of arrays, or one object per line."""
    try:
        whole = json.loads(text)
    except ValueError as error:
        return _json_lines(path, text, error)
    if isinstance(whole, dict) and all(isinstance(values, list) for values in whole.values()):
        return _columns(f"{path}", whole)
    if isinstance(whole, dict):
        whole = [whole]
    bad = next((at for at, row in enumerate(whole) if not isinstance(row, dict)), None)
    if bad is not None or not whole:
        got = "none" if bad is None else f"{whole[bad]!r:.40} as entry {bad}"
        raise FileError(
            path,
            f'a JSON array must have one object per row, such as {{"seconds": 1.5}}. Got {got}.',
        )
    return _records(f"{path}", whole, lambda row: f"entry {row}")


def _json_lines(path: str | Path, text: str, error: ValueError) -> LogTable:
    if text.lstrip()[0] == "[":
        line = getattr(error, "lineno", None)
        raise FileError(path, f"this is not JSON: {error}.", line) from None
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as wrong:
            raise FileError(path, f"this is not a JSON object: {wrong}.", number) from None
        if not isinstance(row, dict):
            raise FileError(path, f"every line must be a JSON object. Got {row!r:.40}.", number)
        rows.append(row)
        lines.append(number)
    return _records(f"{path}", rows, lambda row: f"line {lines[row]}")


def _records(where: str, rows: list[dict[str, Any]], place: Callable[[int], str]) -> LogTable:
    names = list(dict.fromkeys(name for row in rows for name in row))

    def get(name: str, part: slice) -> Column:
        return [row.get(name) for row in rows[part]]

    return LogTable(where, [str(name) for name in names], in_chunks(len(rows), get), place)


# Tables in memory, and Parquet.


def _parquet(path: str | Path, data: bytes) -> LogTable:
    try:
        from pyarrow import ArrowException, BufferReader
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise FileError(
            path,
            "a Parquet file can only be read with pyarrow, which is not installed. "
            "To install it: pip install pyarrow.",
        ) from None
    try:
        file = ParquetFile(BufferReader(data))
        fields = {str(each.name): each for each in file.schema_arrow}
        check_unique(f"{path}", [str(name) for name in file.schema_arrow.names])
    except (ArrowException, OSError) as error:
        raise FileError(path, f"the Parquet file cannot be read: {error}.") from None
    kept: dict[str, Column] = {}

    def get(name: str, part: slice) -> Column:
        if name not in kept:
            try:
                kept[name] = _array(file.read(columns=[name])[name])
            except (ArrowException, OSError) as error:
                raise FileError(path, f"'{name}' cannot be read: {error}.") from None
        return kept[name][part]

    return LogTable(
        f"{path}",
        list(fields),
        in_chunks(file.metadata.num_rows, get),
        lambda row: f"row {row}",
        units={name: "s" for name, each in fields.items() if _is_duration(each)},
        zones=frozenset(name for name, each in fields.items() if _has_zone(each)),
    )


def _frame(frame: Any) -> LogTable:
    names = [str(name) for name in frame.columns]
    check_unique("the data frame", names)
    keys = list(frame.columns)
    return _columns("the data frame", {n: frame[k] for n, k in zip(names, keys, strict=True)})


def _columns(where: str, given: Mapping[str, Any]) -> LogTable:
    """Columns by name; each is a list, an array, or a column of a data frame or an Arrow table."""
    lengths = {}
    for name, values in given.items():
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise InputError(
                f"{where}: the column '{name}' must be a list or an array. Got {values!r:.40}."
            )
        lengths[name] = len(values)
    if len(set(lengths.values())) > 1:
        length = lengths.__getitem__
        shortest, longest = min(lengths, key=length), max(lengths, key=length)
        raise InputError(
            f"{where}: all columns must have the same length. Got {lengths[shortest]} for "
            f"'{shortest}' and {lengths[longest]} for '{longest}'."
        )
    size = next(iter(lengths.values()), 0)
    kept: dict[str, Column] = {}

    def get(name: str, part: slice) -> Column:
        if name not in kept:
            kept[name] = _array(given[name])
        return kept[name][part]

    units = {name: "s" for name, values in given.items() if _is_duration(values)}
    zones = frozenset(name for name, values in given.items() if _has_zone(values))
    return LogTable(
        where, list(given), in_chunks(size, get), lambda row: f"row {row}", False, units, zones
    )


def _array(values: Any) -> Column:
    """A numeric, date-time or text array, or a list of other values."""
    if isinstance(values, list | tuple):
        return values
    to_numpy = getattr(values, "to_numpy", None)
    found = np.asarray(to_numpy() if to_numpy is not None else values)
    if found.dtype.kind == "m":
        seconds = found / np.timedelta64(1, "us") / 1e6
        return np.asarray(seconds)
    if found.dtype.kind in "fiuM":
        return found
    listed: list[Any] = found.tolist()
    return listed


def _is_duration(values: Any) -> bool:
    """Whether the elements are lengths of time, which have a unit."""
    dtype = getattr(values, "dtype", None) or getattr(values, "type", None)
    return str(dtype).lower().startswith(("timedelta", "duration"))


def _has_zone(values: Any) -> bool:
    dtype = getattr(values, "dtype", None) or getattr(values, "type", None)
    return any(getattr(dtype, name, None) is not None for name in ("tz", "time_zone"))
