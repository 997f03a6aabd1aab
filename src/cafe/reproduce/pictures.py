"""Pictures of experiments: measured values with their errors, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cafe.analysis.statistics import Estimate
from cafe.report.plotting import COLOURS, GREY, MARKERS, figure, line_style, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

# Experiments need only this module to draw.
__all__ = ["COLOURS", "GREY", "MARKERS", "figure", "line_style", "tidy"]


def single_panel(width: float = 7.0, height: float = 4.2) -> tuple[Figure, Axes]:
    """A picture with one panel."""
    picture = figure(width, height)
    return picture, picture.add_subplot()


def draw_error_bars(
    axes: Axes,
    estimates: Mapping[Any, Estimate],
    *,
    errors: float = 1.0,
    unit: float = 1.0,
    **style: Any,
) -> Any:
    """Draw means with bars over their keys.

    Args:
        axes: where to draw.
        estimates: by the place on the horizontal axis.
        errors: the half length of a bar, in standard errors.
        unit: what means and errors are divided by.
        style: options of matplotlib's ``errorbar``.
    """
    means = [estimate.mean / unit for estimate in estimates.values()]
    bars = [errors * estimate.error / unit for estimate in estimates.values()]
    return axes.errorbar([*estimates], means, bars, **{"capsize": 2.5, **style})


def draw_measured(axes: Axes, estimates: Mapping[Any, Estimate], unit: float = 1.0) -> None:
    """Draw measured means as black dots that lie above all lines."""
    draw_error_bars(
        axes, estimates, unit=unit, fmt="o", color="#222222", ms=5, label="measured", zorder=5
    )


def draw_hollow(
    axes: Axes, estimates: Mapping[Any, Estimate], colour: str, label: str | None = None
) -> None:
    """Draw measured means as hollow dots of a line's colour."""
    draw_error_bars(axes, estimates, fmt="o", ms=5, mfc="white", color=colour, label=label)


def draw_lines(
    axes: Axes,
    measured: Mapping[str, Mapping[Any, Estimate]],
    printed: Mapping[str, Mapping[Any, float]] | None = None,
) -> None:
    """Draw a line per label with error bars; printed values are hollow marks."""
    for index, (label, by_x) in enumerate(measured.items()):
        marker: dict[str, Any] = {"marker": MARKERS[index % len(MARKERS)]}
        draw_error_bars(axes, by_x, label=label, ms=4.5, **line_style(index), **marker)
        marks = (printed or {}).get(label)
        if marks:
            colour = line_style(index)["color"]
            hollow: dict[str, Any] = {"mfc": "white", "mec": colour, "ls": "none", "ms": 7.0}
            axes.plot([*marks], [*marks.values()], label=f"{label}, as printed", **marker, **hollow)


def set_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Mark just these values on the horizontal axis."""
    axes.set_xticks(list(values), [f"{value:g}" for value in values])


def set_log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with marks at just these values."""
    axes.set_xscale("log")
    set_ticks(axes, values)
    axes.set_xticks([], minor=True)


def legend_above(picture: Figure, named: Axes, *others: Axes) -> None:
    """Put one legend above all panels, with the names in the first; tidy the panels."""
    picture.legend(
        *named.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False,
        fontsize=8,
    )  # fmt: skip
    for axes in (named, *others):
        tidy(axes)
        if (legend := axes.get_legend()) is not None:
            legend.remove()
