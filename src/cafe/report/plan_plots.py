"""Plots about planning: the cost of a plan, the frontier, and fitted response times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cafe.analysis.fit_curves import observed_curve
from cafe.analysis.plan_curves import cost_curve
from cafe.report.plotting import COOL, GOOD, GREY, INK, WARM, figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan

PART_COLOURS = {"waste": WARM, "broadcasts": COOL, "age": GREY}


def plan(made: Plan) -> Figure:
    """The cost against the deadline with its parts, every local optimum, and the rivals."""
    drawn = figure()
    axes = drawn.add_subplot()
    curve = cost_curve(made)
    # Costs where rounds hardly ever succeed are clipped far above the visible range.
    far = 1e6 * made.cost
    label = made.goal.describe()
    axes.plot(curve.deadlines, np.minimum(curve.cost, far), color=INK, lw=2, label=label)
    for name, values in curve.parts.items():
        low, colour = np.minimum(values, far), PART_COLOURS[name]
        axes.plot(curve.deadlines, low, color=colour, lw=1, ls="--", label=f"its part: {name}")
    for i, optimum in enumerate(made.local_optima):
        label = f"the plan: quorum {made.quorum}, deadline {made.deadline:.4g}"
        axes.plot(
            optimum.deadline, optimum.cost, "o", ms=9 if i == 0 else 6,
            color=GOOD if i == 0 else "white", mec=GOOD, label=label if i == 0 else None,
        )  # fmt: skip
    rivals = [r for r in made.rivals if np.isfinite(r.cost)]
    for rival, marker in zip(rivals, "s^vD<>P", strict=False):
        axes.plot(rival.expected.deadline, rival.cost, marker, color=WARM, label=rival.name)
    axes.set(xscale="log", yscale="log", xlabel="deadline", ylabel="cost")
    finite = curve.cost[np.isfinite(curve.cost)]
    axes.set_ylim(made.cost / 30, min(finite.max(), made.cost * 30) * 1.3)
    tidy(axes)
    return drawn


def frontier(front: Frontier, made: Plan | None = None) -> Figure:
    """Waste per report against age, with the deadline of each choice; a star marks the plan."""
    drawn = figure()
    axes = drawn.add_subplot()
    choices = [e for e in front.choices if e.waste > 0 and np.isfinite(e.age)]
    age, waste = [e.age for e in choices], [e.waste_per_gradient for e in choices]
    broadcasts = np.log10([e.broadcasts for e in choices])
    most = max(1.0, float(broadcasts.max(initial=0.0)))
    axes.plot(age, waste, color=GREY, lw=1, zorder=1)
    dots = axes.scatter(age, waste, c=broadcasts, cmap="viridis_r", s=26, vmin=0, vmax=most)
    drawn.colorbar(dots, ax=axes, label="broadcasts per update, log10")
    for e in choices:
        axes.annotate(
            f"{e.deadline:.3g} s", (e.age, e.waste_per_gradient), xytext=(2, 6),
            textcoords="offset points", fontsize=8, color=INK, rotation=55,
        )  # fmt: skip
    knee = front.knee
    if knee in choices:
        at, label = (knee.age, knee.waste_per_gradient), f"the knee: deadline {knee.deadline:.3g} s"
        axes.plot(*at, "o", ms=12, mfc="none", mec=WARM, mew=1.8, label=label)
    if made is not None:
        e = made.expected
        axes.plot(e.age, e.waste_per_gradient, "*", ms=15, color=GOOD, label="the plan")
    axes.set(xscale="log", xlabel="mean age, s")
    axes.margins(y=0.15)
    axes.set_ylabel("client-seconds wasted per used report")
    tidy(axes)
    return drawn


def fit(found: Fit, most: int = 3) -> Figure:
    """The Kaplan-Meier curve with its band, and the CDFs of the ``most`` best families."""
    drawn = figure()
    axes = drawn.add_subplot()
    seen = observed_curve(found)
    axes.fill_between(
        seen.times, seen.low, seen.high, step="post", color=GREY, alpha=0.3, lw=0,
        label="95 % band",
    )  # fmt: skip
    label = "observed (Kaplan-Meier)"
    axes.step(seen.times, seen.share, where="post", color=INK, lw=1.2, label=label)
    grid = np.linspace(0, seen.times[-1] * 1.15, 400)
    for candidate, colour in zip(found.candidates[:most], (GOOD, COOL, WARM), strict=False):
        worth = getattr(candidate, found.criterion)
        label = f"{candidate.family}, {found.criterion.upper()} {worth:.1f}"
        axes.plot(grid, candidate.latency.cdf(grid), color=colour, lw=1.6, label=label)
    axes.set(xlabel="response time", ylabel="share that has reported", ylim=(0, 1.02))
    axes.set_xlim(0, grid[-1])
    tidy(axes)
    return drawn
