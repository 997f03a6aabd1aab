"""Read a log of response times: its columns, units and timestamps become observations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.fitting.log_columns import UNIT_WORDS, UNITS, ColumnOptions, LogColumns, recognise_columns
from cafe.fitting.log_files import LogTable, open_log
from cafe.fitting.log_rows import LogRows, collect_rows, first_row
from cafe.fitting.log_values import FAILED, MISSED
from cafe.fitting.observations import Observations, explain_unusable, find_unusable
from cafe.fitting.timestamps import epoch_unit
from cafe.latency.base import Floats
from cafe.wording import format_count

# A report this much after its deadline counts as a report: clocks and timers are not exact.
_LATE_SHARE, _LATE_SECONDS = 0.01, 0.01
_MOST_LATE = 0.2  # a larger share of later reports means that the deadlines are not deadlines
_OTHER_UNIT = 5.0  # the typical time over the deadline, from which the units seem to differ


@dataclass(frozen=True, eq=False)
class ResponseLog:
    """A log that was read.

    Attributes:
        observations: one per row that counts.
        reading: one sentence: how many rows, and which column was read as what, in which unit.
        warnings: sentences about rows that were left out or changed.
    """

    observations: Observations
    reading: str
    warnings: tuple[str, ...] = ()


def read_log(
    source: object,
    *,
    client: str | None = None,
    seconds: str | None = None,
    deadline: str | float | None = None,
    unit: str | None = None,
    sent: str | None = None,
    received: str | None = None,
) -> ResponseLog:
    r"""Read a log of response times, and say how it was read.

    Columns may have any order, and other columns are ignored. Columns with usual names are found
    by themselves: ``device``, ``latency_ms``, ``timeout (s)``. The others are named here.

    Args:
        source: the path of a CSV, JSON or Parquet file, a data frame, a dictionary of columns, or a
            list of dictionaries. A file may be compressed with gzip.
        client: the column with the clients' names.
        seconds: the column with the response times. A time that is empty, NaN, null or "timeout"
            is a missed deadline.
        deadline: the column with the deadlines, or one deadline for all rows: a number in ``unit``
            (seconds if that is left out), or text with its own unit, such as "500ms".
        unit: "ms", "s" or "min": the unit of columns whose names do not say it.
        sent: the column that says when a request was sent: ISO 8601, or seconds or milliseconds
            since the epoch. Times without a zone are taken as UTC.
        received: the column that says when the report was received. It is used, with ``sent``, if
            there is no column with response times.

    Raises:
        InputError: if a column is not clear or a row cannot be used. The message names the file,
            the row and the option.

    Example:
        >>> from pathlib import Path
        >>> from cafe.fitting import read_log
        >>> _ = Path("log.csv").write_text("device,latency_ms,timeout\na,1500,5000\nb,,5000\n")
        >>> log = read_log("log.csv")
        >>> log.observations
        Observations(1 reports and 1 missed deadlines of 2 clients)
        >>> log.reading
        "Read 2 rows: client from 'device', response times from 'latency_ms' (milliseconds),
        deadlines from 'timeout' (milliseconds, like the response times)."
    """
    table = open_log(source)
    if table is None:
        raise InputError(
            "A log must be the path of a file, a data frame, a dictionary of columns or a list of "
            f"dictionaries. Got {source!r:.60}."
        )
    options = ColumnOptions(client, seconds, deadline, unit, sent, received)
    columns = recognise_columns(table.names, options, table.units, table.error)
    interpretation = _Interpretation(table, columns, unit or "s")
    rows = collect_rows(table, columns, interpretation.check)
    if not rows.size:
        raise table.error("there must be at least one observation. Got none: add a row.")
    return interpretation.log(rows)


def read_observations(
    path: str | Path,
    *,
    client: str | None = None,
    seconds: str | None = None,
    deadline: str | float | None = None,
    unit: str | None = None,
    sent: str | None = None,
    received: str | None = None,
) -> Observations:
    r"""Read observations from a file. The arguments are those of :func:`read_log`.

    CAFe's own files have the columns ``client``, ``seconds`` (empty if the client missed its
    deadline) and ``deadline``.

    Raises:
        InputError: if a row cannot be used; the message names the first such row.

    Example:
        >>> from pathlib import Path
        >>> import cafe
        >>> _ = Path("log.csv").write_text("client,seconds,deadline\na,1.5,5\nb,,5\n")
        >>> cafe.read_observations("log.csv")
        Observations(1 reports and 1 missed deadlines of 2 clients)
    """
    return read_log(
        path, client=client, seconds=seconds, deadline=deadline, unit=unit, sent=sent,
        received=received,
    ).observations  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Interpretation:
    """The rows of a log as observations; ``unit`` is that of timestamps of unknown origin."""

    table: LogTable
    columns: LogColumns
    unit: str

    def log(self, rows: LogRows) -> ResponseLog:
        """The observations, a sentence about the columns, and warnings."""
        seconds, deadline, kept = self._times(rows)
        self._check(seconds, deadline, kept)
        warnings = self._failed(kept)
        seconds, more = self._late(seconds, deadline, kept)
        names = [rows.names[i] for i in np.flatnonzero(kept)] if rows.names else None
        sent = self._sent(rows)
        return ResponseLog(
            Observations(
                seconds[kept], deadline[kept], names, None if sent is None else sent[kept]
            ),
            self._reading(rows),
            (*warnings, *more),
        )

    def check(self, rows: LogRows) -> None:
        """Raise an error if one of these rows cannot be used."""
        self._check(*self._times(rows))

    def _times(self, rows: LogRows) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Response times and deadlines in seconds, and which rows count."""
        columns = self.columns
        seconds = rows.column("seconds")
        if seconds is None or columns.seconds is None:
            seconds = self._between(rows)
        else:
            seconds = seconds * columns.factor(columns.seconds)
        limits = rows.column("deadline")
        if limits is None or columns.deadline is None:
            deadline = np.full(rows.size, columns.deadline_for_all or np.inf)
        else:
            deadline = np.where(np.isnan(limits), np.inf, limits * columns.factor(columns.deadline))
        outcome = rows.column("outcome")
        if outcome is None:
            return seconds, deadline, np.ones(rows.size, dtype=bool)
        # A client that was given up has often been logged with the time that it was waited for.
        gone = outcome == MISSED
        deadline = np.where(gone & np.isinf(deadline) & (seconds > 0), seconds, deadline)
        return np.where(gone, np.nan, seconds), deadline, outcome != FAILED

    def _between(self, rows: LogRows) -> Floats:
        """The time from sent to received, in seconds."""
        sent, received = rows.column("sent"), rows.column("received")
        assert sent is not None and received is not None  # recognise_columns requires them
        zones = {role: rows.zone(role) for role in ("sent", "received")}
        if None not in zones.values() and zones["sent"] != zones["received"]:
            raise self.table.error(
                f"'{self.columns.sent}' and '{self.columns.received}' must both have a zone, or "
                "neither. Got one with and one without: their difference is not known."
            )
        start, end = self._stamp_unit(rows, "sent"), self._stamp_unit(rows, "received")
        unknown = np.isnan(sent) & ~np.isnan(received)
        if unknown.any():
            raise self.table.error(
                f"{self.columns.sent} is empty, so the response time is not known. Fill it in, or "
                "pass --seconds if a column has the response times.",
                first_row(unknown),
            )
        # Subtract first if the units are equal: it keeps the digits of long numbers.
        taken = (received - sent) * start if start == end else received * end - sent * start
        early = taken <= 0
        if early.any():
            raise self.table.error(
                f"{self.columns.received} must be after {self.columns.sent}. Got a difference of "
                f"{taken[first_row(early)]:g} s: the columns are exchanged (--sent, --received), "
                "the clocks differ, or the times are too coarse.",
                first_row(early),
            )
        return taken

    def _stamp_unit(self, rows: LogRows, role: str) -> float:
        """The unit of a column of timestamps, in seconds."""
        column = getattr(self.columns, role)
        values = rows.column(role)
        assert values is not None
        if column in self.columns.units:
            return self.columns.factor(column)
        if rows.zone(role) is not None:
            return 1.0
        found = epoch_unit(values)
        return UNITS[self.unit] if found is None else found

    def _sent(self, rows: LogRows) -> Floats | None:
        """When each request was sent, in seconds since the epoch; None if that is not known."""
        sent = rows.column("sent")
        if sent is None or not np.isfinite(sent).any():
            return None
        epoch = sent * self._stamp_unit(rows, "sent")
        return epoch if epoch_unit(epoch) == 1.0 else None

    def _check(self, seconds: Floats, deadline: Floats, kept: NDArray[np.bool_]) -> None:
        """Raise an error for the first row that cannot be used. Late reports are counted later."""
        bad = kept & find_unusable(np.minimum(seconds, deadline), deadline)
        bad |= kept & ~np.isnan(seconds) & ~np.isfinite(seconds)
        if bad.any():
            at = first_row(bad)
            message = explain_unusable(seconds[at], deadline[at])
            if np.isnan(seconds[at]) and np.isinf(deadline[at]):
                message += (
                    " Pass --deadline with the column of the deadlines, or with one deadline for "
                    "all rows, such as --deadline 20s."
                )
            raise self.table.error(message, at)
        if not kept.any():
            raise self.table.error(
                f"every row has a status of '{self.columns.status}' that means a failure. A fit "
                "needs rows of clients that reported or missed a deadline."
            )

    def _failed(self, kept: NDArray[np.bool_]) -> list[str]:
        count = int(np.sum(~kept))
        if not count:
            return []
        return [
            f"{format_count(count, 'row')} with a failure in '{self.columns.status}' "
            f"({count / kept.size:.1%}) {'is' if count == 1 else 'are'} left out: a failure says "
            "nothing about response times. If clients fail as often from now on, fewer reports "
            "arrive than the fit says."
        ]

    def _late(
        self, seconds: Floats, deadline: Floats, kept: NDArray[np.bool_]
    ) -> tuple[Floats, list[str]]:
        """The times with those after the deadline replaced, and sentences about them."""
        after = kept & (seconds > deadline)
        if not after.any():
            return seconds, []
        slack = np.maximum(_LATE_SHARE * deadline, np.minimum(_LATE_SECONDS, 0.1 * deadline))
        late = after & (seconds > deadline + slack)
        reports = int(np.sum(kept & ~np.isnan(seconds)))
        if late.sum() > _MOST_LATE * reports:
            raise self._too_late(seconds, deadline, late, reports)
        said = []
        if count := int(np.sum(after & ~late)):
            most = float(np.max((seconds - deadline)[after & ~late]))
            said.append(
                f"{format_count(count, 'report')} came up to {most:.2g} s after the deadline and "
                f"{'counts as a report' if count == 1 else 'count as reports'} at the deadline."
            )
        if count := int(late.sum()):
            said.append(
                f"{format_count(count, 'report')} came after the deadline and "
                f"{'counts as a missed deadline' if count == 1 else 'count as missed deadlines'}. "
                f"The first is in {self.table.place(first_row(late))}."
            )
        return np.where(late, np.nan, np.minimum(seconds, deadline)), said

    def _too_late(
        self, seconds: Floats, deadline: Floats, late: NDArray[np.bool_], reports: int
    ) -> InputError:
        columns, at = self.columns, first_row(late)
        ratio = (seconds / deadline)[~np.isnan(seconds) & np.isfinite(deadline)]
        unit = columns.units.get(columns.deadline or "", "s")
        longer = {"s": 1e3, "min": 6e4} if unit == "ms" else {"ms": 1e3, "min": 60.0, "h": 3600.0}
        if unit == "s" and columns.seconds is not None and columns.seconds not in columns.reasons:
            del longer["ms"]  # the response times are not in milliseconds: their name says so
        right = next((u for u, f in longer.items() if np.mean(ratio <= f) > 1 - _MOST_LATE), None)
        message = (
            f"a response time must not be after its deadline. Got {seconds[at]:g} s with the "
            f"deadline {deadline[at]:g} s, and {int(late.sum()):,} of {reports:,} reports are after "
            "theirs."
        )
        if right is None or np.median(ratio) < _OTHER_UNIT:
            return self.table.error(
                f"{message} They would count as missed deadlines if they were few. Leave these "
                "times empty if the clients missed the deadline, or pass --deadline with the time "
                "that the server waited, or with its column.",
                at,
            )
        message += (
            f" The units seem to differ: if the deadlines were {longer[right]:g} times as long, "
            f"{np.mean(ratio <= longer[right]):.0%} of the reports would be in time."
        )
        if columns.deadline_for_all is not None:
            message += " Pass --deadline with its unit, such as --deadline 20s."
        elif columns.deadline in columns.reasons and columns.seconds not in columns.reasons:
            message += f" Pass --unit {right} if that is the unit of '{columns.deadline}'."
        else:
            message += (
                " Give the columns names with units, such as latency_ms and timeout_s, or pass "
                "--deadline with one deadline for all rows and its unit, such as 20s."
            )
        return self.table.error(message, at)

    def _reading(self, rows: LogRows) -> str:
        columns = self.columns
        parts = []
        if columns.client is not None:
            parts.append(f"client from '{columns.client}'")
        if columns.seconds is not None:
            parts.append(f"response times from '{columns.seconds}' {self._unit(columns.seconds)}")
        else:
            parts.append(
                f"response times from '{columns.sent}' to '{columns.received}' "
                f"({self._kind_of_time(rows, 'sent')})"
            )
        if columns.deadline is not None:
            parts.append(f"deadlines from '{columns.deadline}' {self._unit(columns.deadline)}")
        elif columns.deadline_for_all is not None:
            parts.append(f"the deadline {columns.deadline_for_all:g} s for all rows")
        else:
            parts.append("no deadlines")
        if columns.sent is not None and columns.seconds is not None:
            parts.append(f"sent from '{columns.sent}' ({self._kind_of_time(rows, 'sent')})")
        if columns.status is not None:
            parts.append(f"outcomes from '{columns.status}'")
        sentence = f"Read {format_count(rows.size, 'row')}: {', '.join(parts)}."
        return f"{sentence} {columns.hint}".rstrip()

    def _unit(self, column: str) -> str:
        unit = UNIT_WORDS[self.columns.units[column]]
        why = self.columns.reasons.get(column)
        return f"({unit})" if why is None else f"({unit}, {why})"

    def _kind_of_time(self, rows: LogRows, role: str) -> str:
        zone = rows.zone(role)
        if zone is not None:
            return "times with a zone" if zone else "times without a zone, taken as UTC"
        unit = UNIT_WORDS[{v: k for k, v in UNITS.items()}[self._stamp_unit(rows, role)]]
        return f"{unit} since the epoch" if self._sent(rows) is not None else f"{unit}, no date"
