"""The deadlines that cost hardly more than the best one."""

from __future__ import annotations

import numpy as np

from cafe.planner.deadline_grid import deadline_range
from cafe.planner.deadline_search import DeadlineSearch, Optimum

WITHIN = 0.05  # the extra cost that counts as hardly more
STEP = 1.2  # factor between two deadlines of the first, coarse search
PRECISION = 1e-5  # relative


def good_deadlines(search: DeadlineSearch, optimum: Optimum) -> tuple[float, float]:
    """The shortest and longest deadline around the optimum that cost at most 5 % more.

    The quorum is the optimum's. Every deadline between the two keeps the limits. The second one is
    infinite if a longer deadline never costs more than that.
    """
    least = optimum.cost
    if search.target is None and search.sketch is not search:  # compare costs of the same groups
        least = search.goal.cost(search.sketch.expect(optimum.quorum, optimum.deadline))
    most = (1 + WITHIN) * least
    shortest, longest = deadline_range(search.federation)
    longest = max(longest, optimum.deadline)

    def good(deadline: float) -> bool:
        expected = search.sketch.expect(optimum.quorum, deadline)
        kept = all(limit.keeps(expected) for limit in search.limits)
        return kept and search.reaches(deadline) and search.goal.cost(expected) <= most

    def edge(factor: float) -> float:
        inside, outside = optimum.deadline, factor * optimum.deadline
        while good(outside):
            inside, outside = outside, factor * outside
            if not shortest / 2 <= outside <= 2 * longest:
                return np.inf if factor > 1 else inside
        while abs(outside - inside) > PRECISION * inside:
            middle = (inside * outside) ** 0.5
            inside, outside = (middle, outside) if good(middle) else (inside, middle)
        return inside

    return edge(1 / STEP), edge(STEP)
