"""A picture of a sweep: the measure against the values of each key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cafe.report.plotting import MARKERS, figure, line_style, tidy
from cafe.sweep.axes import Axis, RangeAxis
from cafe.sweep.ranking import RankedSetting
from cafe.sweep.ranking_table import format_value
from cafe.sweep.sweep import SweepResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3  # panels in a row


def measure_by_key(result: SweepResult) -> Figure:
    """A panel per key: the mean of every setting, with its standard error, by policy.

    With one key, lines connect the settings of a policy. Settings without a finite mean are left
    out.
    """
    sweep = result.sweep
    shown = [one for one in result.ranking if not one.failed and math.isfinite(one.estimate.mean)]
    across = min(len(sweep.axes), COLUMNS)
    down = -(-len(sweep.axes) // COLUMNS)
    drawn = figure(max(3.2 * across, 5.0), 0.4 + 2.8 * down)
    panels = drawn.subplots(down, across, squeeze=False, sharey=True).ravel()
    for panel, axis in zip(panels, sweep.axes, strict=False):
        _draw(panel, axis, shown, sweep.labels, joined=len(sweep.axes) == 1)
        panel.set_xlabel(axis.key)
        if panel is not panels[0] and (legend := panel.get_legend()):
            legend.remove()
    for row in range(down):
        panels[row * across].set_ylabel(sweep.measure.name.replace("_", " "))
    for panel in panels[len(sweep.axes) :]:
        panel.set_visible(False)
    return drawn


def _draw(
    panel: Axes, axis: Axis, shown: Sequence[RankedSetting], labels: Sequence[str], *, joined: bool
) -> None:
    positions = _positions(axis, shown)
    for index, label in enumerate(labels):
        own = sorted(
            (positions[id(one)], one.estimate.mean, one.estimate.error)
            for one in shown
            if one.label == label
        )
        if own:
            x, y, errors = zip(*own, strict=True)
            bars = [error if error == error else 0.0 for error in errors]
            style = line_style(index) | ({} if joined else {"ls": ""})
            marker = MARKERS[index % len(MARKERS)]
            # Markers are hollow, so that settings with the same mean are visible.
            shape: dict[str, Any] = {"marker": marker, "ms": 5 + index, "mfc": "none", "capsize": 2}
            panel.errorbar(x, y, bars, label=label, **shape, **style)
    if isinstance(axis, RangeAxis):
        if axis.log:
            panel.set_xscale("log")
    elif not _are_numbers(axis.values):
        texts = [format_value(value) for value in axis.values]
        panel.set_xticks(range(len(texts)), texts, rotation=20)
    tidy(panel)


def _positions(axis: Axis, shown: Sequence[RankedSetting]) -> dict[int, float]:
    """Where each setting is on the x axis: its value, or the index of a value that is no number."""
    if isinstance(axis, RangeAxis) or _are_numbers(axis.values):
        return {id(one): float(one.values[axis.key]) for one in shown}
    return {id(one): float(axis.values.index(one.values[axis.key])) for one in shown}


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
