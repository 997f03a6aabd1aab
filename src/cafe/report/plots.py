"""Pictures, by matplotlib, which is loaded only here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import FileError, InputError
from cafe.files import replacing
from cafe.planner import Prices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan

INK, GOOD, WARM, COOL, GREY = "#222222", "#1a7f4b", "#c2571a", "#2b6cb0", "#999999"
MOST_COLUMNS = 1000  # of a picture of clients: more could not be seen


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
    with replacing(path) as new:
        write(made, new, ending)


def write(made: Figure, target: str | Path | IO[str] | IO[bytes], ending: str) -> None:
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
    least = made.cost
    far = (
        1e6 * least
    )  # above the picture: where rounds hardly succeed costs exceed what floats draw
    costs = np.array([made.goal.cost(p) for p in points])
    axes.plot(deadlines, np.minimum(costs, far), color=INK, lw=2, label=made.goal.describe())
    if isinstance(made.goal, Prices):
        parts = (
            (WARM, "waste", [made.goal.waste * p.waste for p in points]),
            (COOL, "broadcasts", [made.goal.broadcast * p.broadcasts for p in points]),
            (GREY, "age", [p.age for p in points]),
        )
        for colour, name, values in parts:
            low = np.minimum(values, far)
            axes.plot(deadlines, low, color=colour, lw=1, ls="--", label=f"its part: {name}")
    for i, optimum in enumerate(made.local_optima):
        label = f"the plan: quorum {made.quorum}, deadline {made.deadline:.4g}"
        axes.plot(
            optimum.deadline, optimum.cost, "o", ms=9 if i == 0 else 6,
            color=GOOD if i == 0 else "white", mec=GOOD, label=label if i == 0 else None,
        )  # fmt: skip
    for rival, marker in zip(rivals, "s^v", strict=False):
        axes.plot(rival.expected.deadline, rival.cost, marker, color=WARM, label=rival.name)
    axes.set(xscale="log", yscale="log", xlabel="deadline", ylabel="cost")
    shown = costs[np.isfinite(costs)]
    axes.set_ylim(least / 30, min(shown.max(), least * 30) * 1.3)
    tidy(axes)
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
    tidy(axes)
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
    tidy(axes)
    return drawn


def holdings(counts: ArrayLike, *, sort: bool = True, classes: Sequence[str] = ()) -> Figure:
    """Who holds what: a column per client, a row per class, the darker the more examples.

    Args:
        counts: how many examples of each class every client holds, of shape (clients, classes).
        sort: bring clients that hold much of the same class side by side; else in their own order.
        classes: their names; numbers if left out.
    """
    table = np.asarray(counts)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu" or table.min() < 0:
        raise InputError(
            "Holdings are whole numbers from 0 up, a row per client and a column per class. "
            f"Got {table.dtype} of shape {table.shape}."
        )
    drawn = figure(9.6, 1.9 + 0.24 * min(table.shape[1], 40))
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    above, axes = drawn.subplots(2, 1, sharex=True, height_ratios=(1, 3.2))
    clients = len(table)
    shown = thinned(table[alike(table)] if sort else table, MOST_COLUMNS)
    extent = (0.0, float(clients), shown.shape[1] - 0.5, -0.5)
    image = axes.imshow(
        np.where(shown.T > 0, shown.T, np.nan), aspect="auto", cmap="viridis_r", extent=extent,
        interpolation="nearest", norm=PowerNorm(0.5, vmin=0),  # most hold few of most classes
    )  # fmt: skip
    whole = MaxNLocator(6, integer=True)
    drawn.colorbar(image, ax=axes, label="examples", pad=0.01, ticks=whole)
    edges = np.linspace(0, clients, len(shown) + 1)
    above.stairs(shown.sum(axis=1), edges, fill=True, color=GREY)
    above.set(ylabel="examples,\nall classes", ylim=(0, None))
    order = "those who hold alike side by side" if sort else "in their own order"
    axes.set(xlabel=f"{clients:,} clients, {order}", ylabel="class", xlim=(0, clients))
    every = max(1, -(-shown.shape[1] // 30))
    ticks = range(0, shown.shape[1], every)
    axes.set_yticks(ticks, [classes[i] if classes else f"{i}" for i in ticks])
    for part in (above, axes):
        part.spines[["top", "right"]].set_visible(False)
    return drawn


def alike(table: NDArray[Any]) -> NDArray[np.intp]:
    """An order of clients: by the class they hold most of, then by how much of all it is."""
    most = table.argmax(axis=1)
    share = table.max(axis=1) / np.maximum(table.sum(axis=1), 1)
    return np.lexsort((-share, most))


def thinned(table: NDArray[Any], most: int) -> NDArray[Any]:
    """The means of neighbouring rows, so that there are at most so many."""
    if len(table) <= most:
        return table
    starts = np.linspace(0, len(table), most, endpoint=False).astype(np.intp)
    sizes = np.diff([*starts, len(table)])
    return np.asarray(np.add.reduceat(table, starts) / sizes[:, None])


def tidy(axes: object) -> None:
    """No frame, a faint grid, and a legend where something has a name."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
