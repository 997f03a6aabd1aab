"""Plots of runs: accuracy and loss, age, fates of jobs, client weights, measured against theory."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cafe.analysis.run_curves import MeanCurve, age_curve, learning_curve, quantile_curve
from cafe.analysis.run_groups import RunGroup
from cafe.report.plotting import GREY, INK, MARKERS, figure, line_style, tidy
from cafe.wording import FATES, QUANTITIES, quantity_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.6  # inches

FATE_STYLES = {  # colour and hatch
    "fresh": ("#0072B2", ""),
    "stale": ("#56B4E9", "//"),
    "over": ("#F0E442", ""),
    "late": ("#E69F00", ""),
    "failed": ("#D55E00", "\\\\"),
    "cancelled": ("#CC79A7", ".."),
    "crashed": ("#555555", ""),
    "refused": ("#222222", "xx"),
    "absent": ("#BBBBBB", ""),
    "open": ("#FFFFFF", "//"),
}

THEORY = (
    "success_probability", "broadcasts", "reports_per_update", "waste", "waste_per_gradient",
    "waste_per_time", "processing_waste", "processing_waste_per_gradient",
    "processing_waste_per_time", "client_seconds", "age",
)  # fmt: skip


def accuracy_and_loss(groups: Sequence[RunGroup]) -> Figure:
    """Accuracy and loss against rounds, virtual time and client-seconds."""
    curves = [h.curve for g in groups for h in g.histories if h.curve is not None and len(h.curve)]
    kinds = [
        what
        for what in ("accuracy", "loss")
        if any(np.isfinite(getattr(curve, what)).any() for curve in curves)
    ]
    drawn = figure(WIDTH, 0.6 + 2.7 * max(len(kinds), 1))
    panels = drawn.subplots(max(len(kinds), 1), 3, squeeze=False, sharey="row", sharex="col")
    for column, along in enumerate(("round", "time", "work")):
        most = max((float(getattr(curve, along)[-1]) for curve in curves), default=1.0)
        scale, unit = (1.0, "") if along == "round" else _unit(most)
        for row, what in enumerate(kinds):
            _learning_panel(panels[row, column], groups, along, what, scale)
            if column == 0:
                panels[row, 0].set_ylabel("accuracy, %" if what == "accuracy" else "loss")
                if what == "accuracy":
                    _zoom(panels[row, 0])
        if kinds:
            panels[-1, column].set_xlabel(
                {
                    "round": "rounds, failed ones included",
                    "time": f"virtual time, {unit}",
                    "work": f"client time spent, client-{unit}",
                }[along]
            )
    _legend(drawn, groups)
    return drawn


def _learning_panel(
    axes: Axes, groups: Sequence[RunGroup], along: str, what: str, scale: float
) -> None:
    """Draw a curve per policy; x values are divided by ``scale``, accuracy is in percent."""
    percent = 100.0 if what == "accuracy" else 1.0
    for index, group in enumerate(groups):
        line = learning_curve(group.histories, along, what)
        if line is not None:
            scaled = MeanCurve(line.x / scale, percent * line.mean, percent * line.error)
            _draw(axes, scaled, index)
    if what == "loss":
        _log_if_wide(axes)
    axes.set_xlim(left=0)
    tidy(axes)


def age(groups: Sequence[RunGroup]) -> Figure:
    """The mean age over time, and each client's mean age, sorted."""
    drawn = figure(WIDTH, 3.7)
    over_time, over_clients = drawn.subplots(1, 2)
    scale, unit = _unit(max(h.virtual_time for g in groups for h in g.histories))
    for index, group in enumerate(groups):
        line = age_curve(group.histories)
        if line is not None:
            _draw(over_time, MeanCurve(line.x / scale, line.mean, line.error), index)
        over_clients.plot(*quantile_curve(group.ages), lw=1.6, **line_style(index))
    over_time.set(xlabel=f"virtual time, {unit}", ylabel="mean age of clients, s", ylim=(0, None))
    over_time.set_xlim(left=0)
    over_clients.set(
        xlabel="clients, sorted by age, %",
        ylabel="age averaged over the run, s",
        xlim=(0, 100),
    )
    _log_if_wide(over_clients)
    for axes in (over_time, over_clients):
        tidy(axes)
    _legend(drawn, groups)
    return drawn


def fates(groups: Sequence[RunGroup]) -> Figure:
    """The share of jobs with each fate: a bar per policy, a part per fate."""
    from matplotlib.patches import Patch

    drawn = figure(WIDTH, 1.9 + 0.42 * len(groups))
    axes = drawn.add_subplot()
    for row, group in enumerate(groups):
        left = 0.0
        for fate, share in group.fate_shares.items():
            count, part = group.fates[fate], 100 * share
            if not count:
                continue
            colour, hatch = FATE_STYLES[fate]
            axes.barh(
                row, part, left=left, height=0.66, color=colour, hatch=hatch, ec="white", lw=0.8
            )
            if part >= 8:
                axes.text(
                    left + part / 2, row, f"{count:,}", ha="center", va="center", fontsize=8,
                    color=_readable(colour), bbox={"fc": colour, "ec": "none", "pad": 1.5},
                )  # fmt: skip
            left += part
    axes.set(xlabel="share of all jobs, %", xlim=(0, 100), ylim=(len(groups) - 0.5, -0.5))
    names = [fill(_shorten(group.label), 34) for group in groups]
    axes.set_yticks(range(len(groups)), names, fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    handles = [
        Patch(
            facecolor=FATE_STYLES[fate][0], hatch=FATE_STYLES[fate][1],
            edgecolor=GREY if fate == "open" else "white", label=f"{word}: {meaning}",
        )
        for fate, (word, meaning) in FATES.items() if any(group.fates[fate] for group in groups)
    ]  # fmt: skip
    drawn.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return drawn


def client_weights(groups: Sequence[RunGroup]) -> Figure:
    """Each client's weight in the updates as a multiple of an equal share, sorted.

    Groups without weights have no line.
    """
    drawn = figure(WIDTH, 3.7)
    axes = drawn.add_subplot()
    axes.axhline(1, color=GREY, lw=1)
    axes.text(99, 0.97, "an equal share", color=INK, fontsize=8, va="top", ha="right")
    for index, group in enumerate(groups):
        axes.plot(*quantile_curve(group.relative_weights), lw=1.6, **line_style(index))
    axes.set(
        xlabel="clients, sorted by weight, %",
        ylabel="weight in the updates,\nmultiple of an equal share",
        xlim=(0, 100),
        ylim=(0, None),
    )
    tidy(axes)
    _legend(drawn, groups)
    return drawn


def theory(groups: Sequence[RunGroup]) -> Figure | None:
    """Relative deviations of measured quantities from expected ones, with 95% intervals."""
    known = [(i, group) for i, group in enumerate(groups) if group.expected]
    rows = [name for name in THEORY if any(group.deviation(name) for _, group in known)]
    if not rows:
        return None
    drawn = figure(WIDTH, 1.1 + (0.14 + 0.1 * len(known)) * len(rows))
    axes = drawn.add_subplot()
    axes.axvline(0, color=INK, lw=1)
    for place, (index, group) in enumerate(known):
        looks = {"color": line_style(index)["color"], "fmt": MARKERS[index % len(MARKERS)]}
        name: str | None = _shorten(group.label)
        for row, quantity in enumerate(rows):
            found = group.deviation(quantity)
            if found is None:
                continue
            height = row + (place - (len(known) - 1) / 2) * 0.7 / len(known)
            off, bar = 100 * found[0], 100 * found[1] if found[1] == found[1] else None
            axes.errorbar(off, height, xerr=bar, ms=4, capsize=2, lw=1.1, label=name, **looks)
            name = None
    axes.set_yticks(range(len(rows)), [_label_with_unit(quantity) for quantity in rows], fontsize=8)
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="deviation from the expected value, %")
    handles, names = axes.get_legend_handles_labels()
    tidy(axes)
    if (inside := axes.get_legend()) is not None:
        inside.remove()
    drawn.legend(handles, names, loc="outside upper center", **_columns(names))
    return drawn


def _draw(axes: Axes, line: MeanCurve, index: int) -> None:
    marker = "." if len(line.x) == 1 else None
    axes.plot(line.x, line.mean, lw=1.6, marker=marker, **line_style(index))
    if np.isfinite(line.error).all():
        low, high = line.mean - line.error, line.mean + line.error
        axes.fill_between(line.x, low, high, color=line_style(index)["color"], alpha=0.2, lw=0)


def _legend(drawn: Figure, groups: Sequence[RunGroup]) -> None:
    from matplotlib.lines import Line2D

    names = [_shorten(group.label) for group in groups]
    handles = [Line2D([], [], lw=1.8, label=n, **line_style(i)) for i, n in enumerate(names)]
    drawn.legend(handles=handles, loc="outside upper center", handlelength=3, **_columns(names))


def _columns(names: Sequence[str]) -> dict[str, Any]:
    """Legend options: as many columns as fit the width of the plot."""
    fits = 130 // (max(map(len, names)) + 9)
    return {"ncols": max(1, min(len(names), fits)), "frameon": False, "fontsize": 9}


def _unit(seconds: float) -> tuple[float, str]:
    return (3600.0, "hours") if seconds > 3 * 3600 else (1.0, "s")


def _log_if_wide(axes: Axes) -> None:
    """Use a logarithmic axis if the values span more than a factor of 20."""
    heights = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    seen = np.concatenate(heights) if heights else np.empty(0)
    seen = seen[np.isfinite(seen)]
    if len(seen) and seen.min() > 0 and seen.max() > 20 * seen.min():
        axes.set_yscale("log")


def _zoom(axes: Axes) -> None:
    """Leave out the steep first tenth, where all curves rise from chance level."""
    heights = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    if not heights:
        return
    top = max(float(y.max()) for y in heights)
    low = min(float(y[len(y) // 10 :].min()) for y in heights)
    margin = max(0.08 * (top - low), 0.5)
    axes.set_ylim(max(low - margin, 0), min(top + margin, 100.5))


def _label_with_unit(name: str) -> str:
    unit = QUANTITIES[name][1]
    return f"{quantity_label(name)}, {unit}" if unit else quantity_label(name)


def _readable(background: str) -> str:
    red, green, blue = (int(background[i : i + 2], 16) for i in (1, 3, 5))
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 130 else "white"


def _shorten(label: str, most: int = 60) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
