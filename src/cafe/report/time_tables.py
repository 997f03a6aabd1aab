"""Tables of changes with time, for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from cafe.report.cells import Cells
from cafe.report.tables import table

if TYPE_CHECKING:
    from cafe.fitting import TimeOfDay, TimeTest


def time_of_day(found: TimeOfDay) -> RenderableType:
    """The tests for changes with time and, if there is a pattern, the factors of each hour."""
    rows = [[test.quantity, test.change, _effect(test), _p(test)] for test in found.tests]
    columns = ["quantity", "change", "effect", "p"]
    title = f"Changes over {found.days:.3g} days"
    parts: list[RenderableType] = [
        Text(),
        table(Cells(title, columns, rows, words=frozenset({0, 1}))),
    ]
    parts += [Text(sentence) for sentence in sentences(found)]
    if found.has_pattern:
        parts += [Text(), _hours(found)]
    return Group(*parts)


def sentences(found: TimeOfDay) -> list[str]:
    """What the tests mean for a plan."""
    drifts = [test for test in found.findings if test.change == "drift"]
    said = []
    if drifts:
        said.append(
            "! Clients changed during the log: an average over it may not describe them now. Fit "
            "only the latest rows."
        )
    if found.has_pattern:
        said.append(
            "Clients depend on the hour of the day. --output FILE --hour H writes the clients at "
            "hour H, for a plan."
        )
    reasons = {test.reason for test in found.tests if test.reason}
    return said + [f"Not tested: {reason}." for reason in sorted(reasons)]


def _effect(test: TimeTest) -> str:
    if math.isnan(test.effect):
        return "-"
    if test.quantity == "response time":
        return f"x {test.effect:.2f}"
    return f"{test.effect:+.3f}" if test.change == "drift" else f"{test.effect:.3f}"


def format_p(p: float) -> str:
    """A p-value as text: ``p = 0.0312``, ``p < 0.0001``."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.4f}"


def _p(test: TimeTest) -> str:
    return "-" if math.isnan(test.p) else format_p(test.p).removeprefix("p ").removeprefix("= ")


def _hours(found: TimeOfDay) -> RenderableType:
    width = found.width or 1
    rows = []
    for first in range(0, 24, width):
        part = slice(first, first + width)
        count = int(found.rows[part].sum())
        if count:
            rows.append(
                [
                    f"{first:02d}-{min(first + width, 24):02d} h",
                    f"{count:,}",
                    f"{np.nanmean(found.slower[part]):.2f}",
                    f"{np.nanmean(found.present[part]):.2f}",
                ]
            )
    columns = ["UTC", "rows", "times as slow", "x availability"]
    return table(Cells("By hour of the day", columns, rows))
