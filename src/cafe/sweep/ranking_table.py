"""The best settings of a sweep as a table of text that fits 80 columns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from cafe.analysis.run_costs import SPENT_FIGURES
from cafe.report.cells import Cells
from cafe.sweep.ranking import RankedSetting
from cafe.sweep.sweep import SweepResult
from cafe.wording import format_estimate, format_number, format_share

WIDTH = 80
_GAP = 2  # columns of a terminal between two columns of a table


def best_settings(result: SweepResult, most: int = 10) -> Cells:
    """The best settings, each with the mean and the standard error of the measure."""
    sweep, shown = result.sweep, result.ranking[:most]
    names = short_names([axis.key for axis in sweep.axes])
    values = [[format_value(one.values[axis.key]) for axis in sweep.axes] for one in shown]
    several = len(sweep.labels) > 1
    policies = [[one.label] if several else [] for one in shown]
    ends = [[_mean(one, sweep.measure.name), _seeds(one, len(sweep.seeds))] for one in shown]
    first = ["policy"] if several else []
    last = [sweep.measure.name.replace("_", " "), "seeds"]
    title = _title(result, len(shown))
    columns = [*first, *names, *last]
    rows = [[*p, *v, *e] for p, v, e in zip(policies, values, ends, strict=True)]
    words = frozenset(range(len(first)))
    if _width(columns, rows) <= WIDTH:
        return Cells(title, columns, rows, words)
    # Too many keys for a column each: all values of a setting are in one column, wrapped.
    fixed = [[*p, *e] for p, e in zip(policies, ends, strict=True)]
    room = max(WIDTH - _GAP - _width([*first, *last], fixed), 20)
    texts = [
        "\n".join(wrap(", ".join(map(" ".join, zip(names, v, strict=True))), room)) for v in values
    ]
    rows = [[*p, text, *e] for p, text, e in zip(policies, texts, ends, strict=True)]
    return Cells(title, [*first, "values", *last], rows, words | {len(first)})


def short_names(keys: Sequence[str]) -> list[str]:
    """The last part of each key; the whole key where two would be equal."""
    lasts = [key.rpartition(".")[2] for key in keys]
    return [last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)]


def format_value(value: Any) -> str:
    """A value of a scenario as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return json.dumps(value, default=str)
    return value if isinstance(value, str) else format_number(value)


def _title(result: SweepResult, shown: int) -> str:
    measure, count = result.sweep.measure, len(result.ranking)
    order = "lowest" if measure.direction == "minimise" else "highest"
    goal = ""
    if measure.name in SPENT_FIGURES and measure.accuracy is not None:
        goal = f" (accuracy {format_share(measure.accuracy)})"
    which = f"The best {shown} of {count:,} settings" if shown < count else "All settings"
    return f"{which}, {order} {measure.name.replace('_', ' ')} first{goal}"


def _mean(one: RankedSetting, measure: str) -> str:
    if not one.estimate.count:
        return "failed"
    if measure in SPENT_FIGURES and one.estimate.mean == math.inf:
        return "not reached"
    form = format_share if measure == "accuracy" else format_estimate
    return form(one.estimate.mean, one.estimate.error)


def _seeds(one: RankedSetting, seeds: int) -> str:
    return f"{one.estimate.count} of {seeds}" if one.failed else f"{seeds}"


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    return sum(widths) + _GAP * (len(widths) - 1)
