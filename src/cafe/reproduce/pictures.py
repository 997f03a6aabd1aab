"""Pictures of experiments: what was measured with its error, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cafe.analysis.statistics import Estimate
from cafe.report.plotting import GREY, MARKERS, figure, line_style, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GREY", "figure", "lines", "one", "tidy"]


def lines(
    axes: Axes,
    found: Mapping[str, Mapping[Any, Estimate]],
    printed: Mapping[str, Mapping[Any, float]] | None = None,
) -> None:
    """A line per label through its means, with standard errors; the paper's own as hollow marks."""
    for index, (label, by_x) in enumerate(found.items()):
        x = [*by_x]
        means, errors = ([getattr(e, name) for e in by_x.values()] for name in ("mean", "error"))
        marked: dict[str, Any] = {"marker": MARKERS[index % len(MARKERS)], "ms": 4.5}
        axes.errorbar(x, means, errors, capsize=2.5, label=label, **line_style(index), **marked)
        theirs = (printed or {}).get(label)
        if theirs:
            hollow: dict[str, Any] = {
                "mfc": "white",
                "mec": line_style(index)["color"],
                "ls": "none",
                "ms": 7.0,
            }
            marked = {"marker": marked["marker"], **hollow}
            axes.plot([*theirs], [*theirs.values()], label=f"{label}, as printed", **marked)


def one(
    xlabel: str, ylabel: str, found: Mapping[str, Mapping[Any, Estimate]], **given: Any
) -> Figure:
    """A picture of one panel with :func:`lines` in it."""
    drawn = figure()
    axes = drawn.add_subplot()
    lines(axes, found, **given)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    tidy(axes)
    return drawn


def ticks(axes: Axes, values: Sequence[float]) -> None:
    """Mark just these values on the horizontal axis."""
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
