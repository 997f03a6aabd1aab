"""A deadline that was found on groups of clients, improved with the exact costs of all clients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cafe.planner.deadline_search import DeadlineSearch, Optimum

PARABOLAS = 8  # at most
ASIDE = 1.02  # factor between the three deadlines of a parabola


def polished(search: DeadlineSearch, near: Optimum) -> Optimum:
    """The least exact cost around a deadline, by parabolas, until their steps are small.

    In the tails, a group represents its clients poorly, so the first deadline may be far off.

    Example:
        >>> import cafe
        >>> from dataclasses import replace
        >>> from cafe.planner.polishing import polished
        >>> made = cafe.plan(cafe.Federation.exponential([1.0, 2.0, 3.0] * 10))
        >>> near = made.search.at(1.1 * made.deadline)
        >>> polished(made.search, near).cost < near.cost
        True
    """
    for _ in range(PARABOLAS):
        low, high = (search.expect(near.quorum, x * near.deadline) for x in (1 / ASIDE, ASIDE))
        left, right = search.goal.cost(low) - near.cost, search.goal.cost(high) - near.cost
        bend = left + right
        if not 0 < bend < np.inf:
            break
        step = float(np.clip(0.5 * (left - right) / bend, -5.0, 5.0))
        deadline = near.deadline * ASIDE**step
        cost = search.goal.cost(search.expect(near.quorum, deadline))
        if not cost < near.cost:
            break
        near = replace(near, deadline=deadline, cost=cost)
        if abs(step) < 0.1:
            break
    return near
