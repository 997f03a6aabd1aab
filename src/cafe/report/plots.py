"""Pictures, by matplotlib, which is loaded only here."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from cafe.errors import FileError, InputError
from cafe.files import reason
from cafe.planner import Prices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan

INK, GOOD, WARM, COOL, GREY = "#222222", "#1a7f4b", "#c2571a", "#2b6cb0", "#999999"


def figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure that belongs to no window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "Pictures need matplotlib, which is not installed. Run: pip install 'cafe-fl[plot]'."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def check(path: str | Path) -> str:
    """The format that a picture's name asks for; refused where nothing can draw it."""
    formats = figure().canvas.get_supported_filetypes()
    ending = Path(path).suffix.lstrip(".").lower()
    if ending not in formats:
        raise FileError(path, f"a picture's name must end in one of: {', '.join(sorted(formats))}.")
    return ending


def save(made: Figure, path: str | Path) -> None:
    """Write a figure; the file's ending chooses the format."""
    ending = check(path)
    try:
        write(made, path, ending)
    except OSError as error:
        raise FileError(path, f"the file cannot be written: {reason(error)}.") from None


def write(made: Figure, target: str | Path | IO[str], ending: str) -> None:
    """Write a figure so that the same figure gives the same bytes."""
    from matplotlib import rc_context

    dateless = {"Date": None} if ending == "svg" else {}
    with rc_context({"svg.hashsalt": "cafe"}):
        made.savefig(target, format=ending, dpi=144, metadata=dateless)


def plan(made: Plan) -> Figure:
    """The cost over the deadline with its parts, every optimum, and the usual guesses."""
    drawn = figure()
    axes = drawn.add_subplot()
    optima = [o.deadline for o in made.local_optima]
    rivals = [r for r in made.rivals if np.isfinite(r.cost)]
    marks = [*optima, *(r.expected.deadline for r in rivals)]
    deadlines = np.geomspace(min(marks) / 5, max(marks) * 2.5, 300)
    points = [made.search.expect(made.quorum, float(t)) for t in deadlines]
    costs = np.array([made.goal.cost(p) for p in points])
    axes.plot(deadlines, costs, color=INK, lw=2, label=made.goal.describe())
    if isinstance(made.goal, Prices):
        parts = (
            (WARM, "waste", [made.goal.waste * p.waste for p in points]),
            (COOL, "broadcasts", [made.goal.broadcast * p.broadcasts for p in points]),
            (GREY, "age", [p.age for p in points]),
        )
        for colour, name, values in parts:
            axes.plot(deadlines, values, color=colour, lw=1, ls="--", label=f"its part: {name}")
    for i, optimum in enumerate(made.local_optima):
        label = f"the plan: quorum {made.quorum}, deadline {made.deadline:.4g}"
        axes.plot(
            optimum.deadline, optimum.cost, "o", ms=9 if i == 0 else 6,
            color=GOOD if i == 0 else "white", mec=GOOD, label=label if i == 0 else None,
        )  # fmt: skip
    for rival, marker in zip(rivals, "s^v", strict=False):
        axes.plot(rival.expected.deadline, rival.cost, marker, color=WARM, label=rival.name)
    least = made.cost
    axes.set(xscale="log", yscale="log", xlabel="deadline", ylabel="cost")
    shown = costs[np.isfinite(costs)]
    axes.set_ylim(least / 30, min(shown.max(), least * 30) * 1.3)
    _tidy(axes)
    return drawn


def frontier(front: Frontier, made: Plan | None = None) -> Figure:
    """Waste against age along the frontier, coloured by broadcasts."""
    drawn = figure()
    axes = drawn.add_subplot()
    age, waste = front.column("age"), front.column("waste")
    broadcasts = np.log10(front.column("broadcasts"))
    most = max(1.0, float(broadcasts.max()))
    dots = axes.scatter(age, waste, c=broadcasts, cmap="viridis_r", s=18, vmin=0, vmax=most)
    drawn.colorbar(dots, ax=axes, label="broadcasts per update, log10")
    if made is not None:
        axes.plot(made.expected.age, made.expected.waste, "*", ms=15, color=GOOD, label="the plan")
    axes.set(xscale="log", yscale="log", xlabel="mean age", ylabel="waste per update")
    _tidy(axes)
    return drawn


def fit(found: Fit, most: int = 3) -> Figure:
    """The Kaplan-Meier curve with its band, and the best families through it."""
    drawn = figure()
    axes = drawn.add_subplot()
    times, survival, error = found.kaplan_meier()
    edge = np.concatenate([[0.0], times])
    shown = 1.0 - np.concatenate([[1.0], survival])
    band = 1.96 * np.concatenate([[0.0], error])
    axes.fill_between(
        edge, np.clip(shown - band, 0, 1), np.clip(shown + band, 0, 1),
        step="post", color=GREY, alpha=0.3, lw=0, label="95 % band",
    )  # fmt: skip
    axes.step(edge, shown, where="post", color=INK, lw=1.2, label="observed (Kaplan-Meier)")
    grid = np.linspace(0, edge[-1] * 1.15, 400)
    for candidate, colour in zip(found.candidates[:most], (GOOD, COOL, WARM), strict=False):
        worth = getattr(candidate, found.criterion)
        label = f"{candidate.family}, {found.criterion.upper()} {worth:.1f}"
        axes.plot(grid, candidate.latency.cdf(grid), color=colour, lw=1.6, label=label)
    axes.set(xlabel="response time", ylabel="share that has reported", ylim=(0, 1.02))
    axes.set_xlim(0, grid[-1])
    _tidy(axes)
    return drawn


def _tidy(axes: object) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
