"""The plot of a plan marks every optimum and rival."""

from __future__ import annotations

import numpy as np

from cafe.planner import Plan, frontier
from cafe.report import (
    plan_plots,
)


def test_plots_mark_every_optimum(made: Plan) -> None:
    (axes,) = plan_plots.plan(made).axes
    drawn = [np.asarray(line.get_xdata(), dtype=float) for line in axes.lines]
    marked = {float(xs[0]) for xs in drawn if xs.size == 1}
    assert {o.deadline for o in made.local_optima} <= marked
    assert {r.expected.deadline for r in made.rivals} <= marked


def test_frontier_labels_deadlines_and_the_knee(made: Plan) -> None:
    front = frontier(made.federation)
    axes = plan_plots.frontier(front, made).axes[0]
    labels = [note.get_text() for note in axes.texts]
    assert labels == [f"{e.deadline:.3g} s" for e in front.choices]
    legend = axes.get_legend()
    assert legend is not None
    said = [text.get_text() for text in legend.get_texts()]
    assert f"the knee: deadline {front.knee.deadline:.3g} s" in said
