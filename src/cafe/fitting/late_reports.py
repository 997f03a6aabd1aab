"""Response times and deadlines that do not agree: late reports, and units that seem to differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.fitting.log_columns import LogColumns
from cafe.fitting.log_rows import first_row
from cafe.fitting.log_table import LogTable
from cafe.latency.base import Floats
from cafe.wording import format_count

# A report this much after its deadline counts as a report: clocks and timers are not exact.
_LATE_SHARE, _LATE_SECONDS = 0.01, 0.01
_MOST_LATE = 0.2  # a larger share of later reports means that the deadlines are not deadlines
_OTHER_UNIT = 5.0  # the typical time over the deadline, from which the units seem to differ
_FAR_LONGER = 100.0  # the deadline over the longest time, from which the units may differ


@dataclass(frozen=True, eq=False)
class LateReports:
    """What happens to the reports of a log that came after their deadline."""

    table: LogTable
    columns: LogColumns

    def replace(
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
            raise self._too_many(seconds, deadline, late, reports)
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

    def far_from(self, seconds: Floats, deadline: Floats, kept: NDArray[np.bool_]) -> list[str]:
        """A sentence if deadlines of an assumed unit are far longer than every response time."""
        column, reported = self.columns.deadline, kept & ~np.isnan(seconds)
        if column not in self.columns.reasons or not reported.any():
            return []
        limited = deadline[kept & np.isfinite(deadline)]
        longest = float(seconds[reported].max())
        if not limited.size or float(limited.min()) < _FAR_LONGER * longest:
            return []
        return [
            f"The shortest deadline, {limited.min():g} s, is {limited.min() / longest:,.0f} times "
            f"the longest response time, {longest:.4g} s. The name of '{column}' has no unit: if "
            "it is not in seconds, pass --deadline with one deadline for all rows and its unit, "
            f"such as 20s, or give the column a name with its unit, such as {column}_ms."
        ]

    def _too_many(
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
            f"deadline {deadline[at]:g} s, and {int(late.sum()):,} of {reports:,} reports are "
            "after theirs."
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
