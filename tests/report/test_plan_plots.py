"""The plot of a plan marks every optimum and rival."""

from __future__ import annotations

import numpy as np

from cafe.planner import Plan
from cafe.report import (
    plan_plots,
)


def test_plots_mark_every_optimum(made: Plan) -> None:
    (axes,) = plan_plots.plan(made).axes
    drawn = [np.asarray(line.get_xdata(), dtype=float) for line in axes.lines]
    marked = {float(xs[0]) for xs in drawn if xs.size == 1}
    assert {o.deadline for o in made.local_optima} <= marked
    assert {r.expected.deadline for r in made.rivals} <= marked
