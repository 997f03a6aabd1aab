"""The cost of a plan against the deadline, with the parts of the cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cafe.latency.base import Floats
from cafe.planner import Plan, Prices

POINTS = 300


class CostCurve(NamedTuple):
    """The cost at each deadline, and its parts by name; no parts if the goal has no prices."""

    deadlines: Floats
    cost: Floats
    parts: dict[str, Floats]


def cost_curve(plan: Plan) -> CostCurve:
    """The cost with the plan's quorum, over a range that covers all optima and rivals."""
    marks = [optimum.deadline for optimum in plan.local_optima]
    marks += [r.expected.deadline for r in plan.rivals if np.isfinite(r.cost)]
    deadlines = np.geomspace(min(marks) / 5, max(marks) * 2.5, POINTS)
    points = [plan.search.sketch.expect(plan.quorum, float(t)) for t in deadlines]
    parts = {}
    if isinstance(plan.goal, Prices):
        parts["waste"] = np.array([plan.goal.waste * p.waste for p in points])
        parts["broadcasts"] = np.array([plan.goal.broadcast * p.broadcasts for p in points])
        parts["age"] = np.array([p.age for p in points])
    return CostCurve(deadlines, np.array([plan.goal.cost(p) for p in points]), parts)
