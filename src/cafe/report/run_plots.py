"""Pictures of runs: how they learned, how old clients were, what became of jobs, who was heard."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cafe.analysis.repeated_runs import Repeats, amounts
from cafe.latency.base import Floats
from cafe.report.plots import GREY, INK, figure, tidy
from cafe.wording import FATES, QUANTITIES, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cafe.rounds import History

POINTS = 160  # of a curve: what a screen can show, and a small file
WIDTH = 9.6

# Okabe and Ito's colours, which colour-blind readers can tell apart; lines differ in dashes too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#222222")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)))
MARKERS = "osD^v<>"

FATE_LOOKS = {
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


class Line(NamedTuple):
    """A curve: its mean over runs, and the standard error, not a number for one run."""

    x: Floats
    mean: Floats
    error: Floats


def look(index: int) -> dict[str, Any]:
    """The colour and dashes of a policy, the same in every picture."""
    return {"color": COLOURS[index % len(COLOURS)], "ls": DASHES[index % len(DASHES)]}


def learned(groups: Sequence[Repeats]) -> bool:
    """Whether any run had something to learn."""
    return any(h.curve is not None and len(h.curve) for g in groups for h in g.histories)


def learning(groups: Sequence[Repeats]) -> Figure:
    """Accuracy and loss against rounds, virtual time and client-seconds."""
    kinds = [
        what
        for what in ("accuracy", "loss")
        if any(
            h.curve is not None and np.isfinite(getattr(h.curve, what)).any()
            for g in groups
            for h in g.histories
        )
    ]
    drawn = figure(WIDTH, 0.6 + 2.7 * max(len(kinds), 1))
    panels = drawn.subplots(max(len(kinds), 1), 3, squeeze=False, sharey="row", sharex="col")
    for column, along in enumerate(("round", "time", "work")):
        most = max(
            (float(getattr(h.curve, along)[-1]) for g in groups for h in g.histories if _has(h)),
            default=1.0,
        )
        scale, unit = (1.0, "") if along == "round" else _unit(most)
        name = {
            "round": "rounds, failed ones included",
            "time": f"virtual time, {unit}",
            "work": f"client time spent, client-{unit}",
        }[along]
        for row, what in enumerate(kinds):
            axes = panels[row, column]
            for index, group in enumerate(groups):
                line = curve(group.histories, along, what)
                if line is not None:
                    percent = 100.0 if what == "accuracy" else 1.0
                    _draw(axes, Line(line.x / scale, *(percent * y for y in line[1:])), index)
            if row == len(kinds) - 1:
                axes.set_xlabel(name)
            if column == 0:
                axes.set_ylabel("accuracy, %" if what == "accuracy" else "loss")
            if what == "loss":
                _log_if_wide(axes)
            elif column == 0:
                _zoom(axes)
            axes.set_xlim(left=0)
            tidy(axes)
    _legend(drawn, groups)
    return drawn


def age(groups: Sequence[Repeats]) -> Figure:
    """The mean age over time, and every client's age, from the best heard to the least."""
    drawn = figure(WIDTH, 3.7)
    over_time, over_clients = drawn.subplots(1, 2)
    scale, unit = _unit(max(h.virtual_time for g in groups for h in g.histories))
    for index, group in enumerate(groups):
        line = ages(group.histories)
        if line is not None:
            _draw(over_time, Line(line.x / scale, line.mean, line.error), index)
        over_clients.plot(*spread(group.by_client("age_by_client")), lw=1.6, **look(index))
    over_time.set(xlabel=f"virtual time, {unit}", ylabel="mean age of clients, s", ylim=(0, None))
    over_time.set_xlim(left=0)
    over_clients.set(
        xlabel="clients, youngest to oldest, %",
        ylabel="age averaged over the run, s",
        xlim=(0, 100),
    )
    _log_if_wide(over_clients)
    for axes in (over_time, over_clients):
        tidy(axes)
    _legend(drawn, groups)
    return drawn


def fates(groups: Sequence[Repeats]) -> Figure:
    """What became of the jobs: a bar per policy, a part per fate, in words."""
    from matplotlib.patches import Patch

    drawn = figure(WIDTH, 1.9 + 0.42 * len(groups))
    axes = drawn.add_subplot()
    for row, group in enumerate(groups):
        jobs, left = max(sum(group.fates.values()), 1), 0.0
        for fate, count in group.fates.items():
            part = 100 * count / jobs
            if not count:
                continue
            colour, hatch = FATE_LOOKS[fate]
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
    names = [fill(_wrapped(group.label), 34) for group in groups]
    axes.set_yticks(range(len(groups)), names, fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    handles = [
        Patch(
            facecolor=FATE_LOOKS[fate][0], hatch=FATE_LOOKS[fate][1],
            edgecolor=GREY if fate == "open" else "white", label=f"{word}: {meaning}",
        )
        for fate, (word, meaning) in FATES.items()
    ]  # fmt: skip
    drawn.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return drawn


def weight(groups: Sequence[Repeats]) -> Figure:
    """How much each client counted in the updates, against an equal share."""
    drawn = figure(WIDTH, 3.7)
    axes = drawn.add_subplot()
    axes.axhline(1, color=GREY, lw=1)
    axes.text(99, 0.97, "an equal share", color=INK, fontsize=8, va="top", ha="right")
    for index, group in enumerate(groups):
        each = group.by_client("weight_by_client")
        axes.plot(*spread(each * len(each)), lw=1.6, **look(index))
    axes.set(
        xlabel="clients, least to most heard, %",
        ylabel="weight in the updates,\ntimes an equal share",
        xlim=(0, 100),
        ylim=(0, None),
    )
    tidy(axes)
    _legend(drawn, groups)
    return drawn


def theory(groups: Sequence[Repeats]) -> Figure | None:
    """How far measured quantities are from the expected ones, with 95% intervals."""
    known = [(i, group) for i, group in enumerate(groups) if group.expected]
    rows = [name for name in THEORY if any(_off(group, name) for _, group in known)]
    if not rows:
        return None
    drawn = figure(WIDTH, 1.1 + (0.14 + 0.1 * len(known)) * len(rows))
    axes = drawn.add_subplot()
    axes.axvline(0, color=INK, lw=1)
    for place, (index, group) in enumerate(known):
        looks = {"color": look(index)["color"], "fmt": MARKERS[index % len(MARKERS)]}
        name: str | None = _wrapped(group.label)
        for row, quantity in enumerate(rows):
            found = _off(group, quantity)
            if found is None:
                continue
            height = row + (place - (len(known) - 1) / 2) * 0.7 / len(known)
            bar = found[1] if found[1] == found[1] else None
            axes.errorbar(found[0], height, xerr=bar, ms=4, capsize=2, lw=1.1, label=name, **looks)
            name = None
    axes.set_yticks(range(len(rows)), [_named(quantity) for quantity in rows], fontsize=8)
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="measured, above or below what was expected, %")
    handles, names = axes.get_legend_handles_labels()
    tidy(axes)
    if (inside := axes.get_legend()) is not None:
        inside.remove()
    drawn.legend(handles, names, loc="outside upper center", **_columns(names))
    return drawn


def _off(group: Repeats, quantity: str) -> tuple[float, float] | None:
    """How far a quantity is from what was expected, and its 95% interval, in percent."""
    expected = group.expected.get(quantity)
    if not expected or not np.isfinite(expected):
        return None
    found = group.estimate(quantity)
    if not np.isfinite(found.mean):
        return None
    return 100 * (found.mean - expected) / expected, 100 * found.interval() / expected


def curve(histories: Sequence[History], along: str, what: str) -> Line | None:
    """The mean of ``accuracy`` or ``loss`` against rounds, time or work, as far as all runs go."""
    pairs = []
    for history in histories:
        if not _has(history):
            continue
        x, y = np.asarray(getattr(history.curve, along), float), getattr(history.curve, what)
        good = np.isfinite(y)
        if good.any():
            pairs.append((x[good], np.asarray(y[good], float)))
    if not pairs:
        return None
    low, high = max(x[0] for x, _ in pairs), min(x[-1] for x, _ in pairs)
    if len(pairs) == 1 and len(pairs[0][0]) <= POINTS:
        grid = pairs[0][0]
    else:
        grid = np.linspace(low, max(low, high), POINTS if high > low else 1)
    return _meaned(grid, [np.interp(grid, x, y) for x, y in pairs])


def ages(histories: Sequence[History]) -> Line | None:
    """The mean age over time, averaged exactly over as many stretches as a picture can show."""
    ends = [h.virtual_time for h in histories if h.rounds]
    if not ends:
        return None
    number = min(POINTS, max(h.rounds for h in histories))
    edges = np.linspace(0, min(ends), number + 1)
    rows = [np.diff(area_until(h, edges)) / np.diff(edges) for h in histories if h.rounds]
    return _meaned((edges[1:] + edges[:-1]) / 2, rows)


def area_until(history: History, times: Floats) -> Floats:
    """The mean age summed over time, from 0 to each of the times; exact within rounds too."""
    closed = np.concatenate([[0.0], history.by_round["closed"]])
    after = np.concatenate([[0.0], history.by_round["age"]])
    sums = np.concatenate([[0.0], np.cumsum(amounts(history)["area"])])
    last = np.clip(np.searchsorted(closed, times, side="right") - 1, 0, len(closed) - 1)
    since = times - closed[last]
    return np.asarray(sums[last] + since * (after[last] + since / 2))


def spread(each: Floats) -> tuple[Floats, Floats]:
    """Values from the least to the largest against the share of clients, thinned for a picture."""
    ordered = np.sort(each)
    if len(ordered) > POINTS:
        ordered = np.quantile(ordered, np.linspace(0, 1, POINTS))
    if len(ordered) == 1:
        ordered = np.repeat(ordered, 2)
    return np.linspace(0, 100, len(ordered)), ordered


def _meaned(grid: Floats, rows: Sequence[Floats]) -> Line:
    table = np.asarray(rows)
    error = table.std(axis=0, ddof=1) / len(table) ** 0.5 if len(table) > 1 else table[0] * np.nan
    return Line(grid, table.mean(axis=0), error)


def _draw(axes: Axes, line: Line, index: int) -> None:
    marker = "." if len(line.x) == 1 else None
    axes.plot(line.x, line.mean, lw=1.6, marker=marker, **look(index))
    if np.isfinite(line.error).all():
        low, high = line.mean - line.error, line.mean + line.error
        axes.fill_between(line.x, low, high, color=look(index)["color"], alpha=0.2, lw=0)


def _legend(drawn: Figure, groups: Sequence[Repeats]) -> None:
    from matplotlib.lines import Line2D

    names = [_wrapped(group.label) for group in groups]
    handles = [Line2D([], [], lw=1.8, label=n, **look(i)) for i, n in enumerate(names)]
    drawn.legend(handles=handles, loc="outside upper center", handlelength=3, **_columns(names))


def _columns(names: Sequence[str]) -> dict[str, Any]:
    """A legend that is as wide as the picture allows."""
    fits = 130 // (max(map(len, names)) + 9)
    return {"ncols": max(1, min(len(names), fits)), "frameon": False, "fontsize": 9}


def _has(history: History) -> bool:
    return history.curve is not None and len(history.curve) > 0


def _unit(seconds: float) -> tuple[float, str]:
    return (3600.0, "hours") if seconds > 3 * 3600 else (1.0, "s")


def _log_if_wide(axes: Axes) -> None:
    heights = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    seen = np.concatenate(heights) if heights else np.empty(0)
    seen = seen[np.isfinite(seen)]
    if len(seen) and seen.min() > 0 and seen.max() > 20 * seen.min():
        axes.set_yscale("log")


def _zoom(axes: Axes) -> None:
    """Leave out the steep first tenth, where all curves rise alike from guessing."""
    heights = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    if not heights:
        return
    top = max(float(y.max()) for y in heights)
    low = min(float(y[len(y) // 10 :].min()) for y in heights)
    margin = max(0.08 * (top - low), 0.5)
    axes.set_ylim(max(low - margin, 0), min(top + margin, 100.5))


def _named(name: str) -> str:
    unit = QUANTITIES[name][1]
    return f"{name_of(name)}, {unit}" if unit else name_of(name)


def _readable(background: str) -> str:
    red, green, blue = (int(background[i : i + 2], 16) for i in (1, 3, 5))
    return "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 130 else "white"


def _wrapped(label: str, most: int = 60) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
