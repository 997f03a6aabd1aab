"""The planner: choose the quorum and the deadline of a federation's rounds."""

from cafe.planner.deadline_search import Optimum
from cafe.planner.frontier import Frontier, frontier
from cafe.planner.goals import Goal, Prices, ToGap
from cafe.planner.intervals import Interval
from cafe.planner.limits import Limit
from cafe.planner.plan import Plan, Robustness, plan
from cafe.planner.pooled_times import pooled_mean, pooled_quantile
from cafe.planner.rivals import Rival
from cafe.planner.to_accuracy import ToAccuracy

__all__ = [
    "Frontier",
    "Goal",
    "Interval",
    "Limit",
    "Optimum",
    "Plan",
    "Prices",
    "Rival",
    "Robustness",
    "ToAccuracy",
    "ToGap",
    "frontier",
    "plan",
    "pooled_mean",
    "pooled_quantile",
]
