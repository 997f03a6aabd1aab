"""Logs as text with one row per line: CSV, also with semicolons, tabs or bars."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import FileError
from cafe.fitting.log_table import CHUNK, Column, LogTable, check_unique


def delimited_log(path: str | Path, text: str) -> LogTable:
    """The log in a text whose first line names the columns; ``path`` is for error messages."""
    mark = _delimiter(text)
    names = _header(path, text, mark)

    def chunks(wanted: Sequence[str]) -> Iterator[list[Column]]:
        places = [names.index(name) for name in wanted]
        done = 1
        for rows in _rows(path, text, mark):
            short = np.fromiter(map(len, rows), dtype=np.intp, count=len(rows)) != len(names)
            whole = rows[: int(np.argmax(short))] if short.any() else rows
            if whole:
                yield [[row[place] for row in whole] for place in places]
            if short.any():
                shown = ",".join(names[:8]) + (",..." if len(names) > 8 else "")
                wanted_fields = f"{len(names)} field{'s' if len(names) > 1 else ''} ({shown})"
                raise FileError(
                    path,
                    f"every line must have {wanted_fields}. Got {len(rows[len(whole)])}.",
                    _line(text, mark, done + len(whole)),
                )
            done += len(rows)

    return LogTable(
        f"{path}", names, chunks, lambda row: f"line {_line(text, mark, row + 1)}", mark == ";"
    )


def _delimiter(text: str) -> str:
    """The character between the fields of the first line: the most frequent outside quotes."""
    first = text.lstrip("\r\n").splitlines()[0]
    bare = "".join(first.split('"')[::2])
    return max(",;\t|", key=lambda mark: (bare.count(mark), mark == ","))


def _reader(text: str, mark: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark)


def _line(text: str, mark: str, record: int) -> int:
    """The line on which a record begins; a quoted field may span several lines."""
    lines = _reader(text, mark)
    for _ in islice(lines, record):
        pass
    return int(lines.line_num) + 1


def _rows(path: str | Path, text: str, mark: str) -> Iterator[list[list[str]]]:
    """The records below the header, many at a time."""
    rows: list[list[str]] = []
    done = 0
    try:
        for row in _reader(text, mark):
            rows.append(row)
            if len(rows) == CHUNK:
                yield rows if done else rows[1:]
                done += len(rows)
                rows = []
    except csv.Error as error:
        line = _line(text, mark, done + len(rows))
        raise FileError(path, f"this is not CSV: {error}. Check its quotes.", line) from None
    rest = rows if done else rows[1:]
    if rest:
        yield rest


def _header(path: str | Path, text: str, mark: str) -> list[str]:
    try:
        names = [name.strip() for name in next(_reader(text, mark))]
    except csv.Error as error:
        raise FileError(path, f"this is not CSV: {error}. Check its quotes.", 1) from None
    if any(_is_number(name) for name in names):
        number = next(name for name in names if _is_number(name))
        raise FileError(
            path,
            f"the first line must name the columns, such as client,seconds,deadline. "
            f"Got '{number}': add a line of names.",
            1,
        )
    check_unique(f"{path}, line 1", names)
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
