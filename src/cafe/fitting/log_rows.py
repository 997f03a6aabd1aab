"""The rows of a log: its columns converted to arrays, with errors that name the first bad row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.fitting.log_columns import LogColumns
from cafe.fitting.log_table import Column, LogTable
from cafe.fitting.log_values import UNREADABLE, to_names, to_numbers, to_outcomes
from cafe.fitting.timestamps import Timestamps, parse_timestamps
from cafe.latency.base import Floats


@dataclass(eq=False)
class LogRows:
    """The rows read so far, column by column, in the units of the log.

    Attributes:
        size: the number of rows.
        names: the clients' names; empty if the log has none.
        seconds, deadline: the numbers of these columns; empty if the log has none.
        sent, received: the times of these columns; empty if the log has none.
        outcome: what the status of each row says; empty if the log has none.
        zones: for ``sent`` and ``received``, whether the times have a zone; None for numbers.
    """

    size: int = 0
    names: list[str] = field(default_factory=list)
    parts: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    zones: dict[str, set[bool | None]] = field(default_factory=dict)

    def column(self, role: str) -> Floats | None:
        """All values of a column, or None if the log has no such column."""
        return np.concatenate(self.parts[role]) if role in self.parts else None

    def zone(self, role: str) -> bool | None:
        """Whether the times of a column have a zone; None if they are numbers."""
        known = self.zones.get(role, set()) - {None}
        return None if not known else False not in known


def collect_rows(table: LogTable, columns: LogColumns, check: Callable[[LogRows], None]) -> LogRows:
    """Convert the columns, many rows at a time.

    Args:
        table: the log.
        columns: what its columns mean.
        check: called with the rows before the first one that cannot be read, because one of them
            may be the first mistake.

    Raises:
        InputError: names the first entry that cannot be read.
    """
    rows, wanted = LogRows(), columns.used
    try:
        for chunk in table.chunks(wanted):
            _add(rows, table, columns, dict(zip(wanted, chunk, strict=True)), len(chunk[0]))
    except InputError:
        if rows.size:
            check(rows)
        raise
    return rows


def _add(
    rows: LogRows, table: LogTable, columns: LogColumns, values: dict[str, Column], size: int
) -> None:
    found: dict[str, NDArray[Any]] = {}
    unreadable: list[tuple[int, str]] = []
    names: list[str] = []
    for role in ("seconds", "deadline"):
        column = getattr(columns, role)
        if column is not None:
            found[role] = to_numbers(values[column], table.decimal_comma)
            bad = found[role] == UNREADABLE
            if bad.any():
                at = int(np.argmax(bad))
                unreadable.append((at, _not_a_number(column, role, values[column][at])))
    for role in ("sent", "received"):
        column = getattr(columns, role)
        if column is not None:
            stamps: Timestamps = parse_timestamps(values[column])
            found[role] = stamps.seconds
            zone = True if column in table.zones else stamps.zone
            rows.zones.setdefault(role, set()).add(zone)
            if stamps.bad is not None:
                entry = values[column][stamps.bad]
                unreadable.append((stamps.bad, _not_a_time(column, role, entry)))
    if columns.client is not None:
        names = to_names(values[columns.client])
        if "" in names:
            unreadable.append((names.index(""), _no_name(columns.client)))
    if columns.status is not None:
        found["outcome"] = to_outcomes(values[columns.status])
    first, message = min(unreadable, default=(size, ""))
    for role, array in found.items():
        rows.parts.setdefault(role, []).append(array[:first])
    rows.names += names[:first]
    rows.size += first
    if unreadable:
        raise table.error(message, rows.size)


def _shown(entry: object) -> str:
    return f"'{entry}'" if isinstance(entry, str) else f"{entry!r:.60}"


def _not_a_number(column: str, role: str, entry: Any) -> str:
    entry = entry.strip() if isinstance(entry, str) else entry
    what = "response time" if role == "seconds" else "deadline"
    rest = (
        "Leave the field empty if there is none, "
        f"or pass --{role} if another column has the {what}s."
    )
    if isinstance(entry, str) and ":" in entry:
        rest = (
            "It looks like a time of day: pass --sent and --received to compute response times "
            "from timestamps."
        )
    return f"{column} must be a finite number. Got {_shown(entry)}. {rest}"


def _not_a_time(column: str, role: str, entry: Any) -> str:
    return (
        f"{column} must be a time in ISO 8601, such as 2026-03-01T14:00:00Z, or a number of "
        f"seconds or milliseconds since the epoch. Got {_shown(entry)}. Correct it, or pass "
        f"--{role} if another column has these times."
    )


def _no_name(column: str) -> str:
    return (
        f"{column} must be a name. Got an empty field: fill it in, or pass --client if another "
        "column has the clients' names."
    )


def first_row(bad: Sequence[bool] | NDArray[np.bool_]) -> int:
    """The first row that is marked."""
    return int(np.argmax(np.asarray(bad)))
