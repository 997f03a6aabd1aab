"""The rows of a log as observations: units, timestamps and outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.late_reports import LateReports
from cafe.fitting.log_columns import UNIT_WORDS, UNITS, LogColumns
from cafe.fitting.log_rows import LogRows, first_row
from cafe.fitting.log_table import LogTable
from cafe.fitting.log_values import FAILED, MISSED
from cafe.fitting.observations import Observations, explain_unusable, find_unusable
from cafe.fitting.timestamps import epoch_unit
from cafe.latency.base import Floats
from cafe.wording import format_count


@dataclass(frozen=True, eq=False)
class ParsedLog:
    """A log that was read.

    Attributes:
        observations: one per row that counts.
        reading: one sentence: how many rows, and which column was read as what, in which unit.
        warnings: sentences about rows that were left out or changed.
    """

    observations: Observations
    reading: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Interpretation:
    """The rows of a log as observations; ``unit`` is that of timestamps of unknown origin."""

    table: LogTable
    columns: LogColumns
    unit: str

    def log(self, rows: LogRows) -> ParsedLog:
        """The observations, a sentence about the columns, and warnings."""
        seconds, deadline, kept = self._times(rows)
        self._check(seconds, deadline, kept)
        warnings = self._failed(kept)
        late = LateReports(self.table, self.columns)
        warnings += late.far_from(seconds, deadline, kept)
        seconds, more = late.replace(seconds, deadline, kept)
        names = [rows.names[i] for i in np.flatnonzero(kept)] if rows.names else None
        sent = self._sent(rows)
        return ParsedLog(
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
        if sent is None or received is None:  # recognise_columns requires them
            raise AssertionError
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
