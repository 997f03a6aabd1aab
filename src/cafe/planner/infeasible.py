"""Why no deadline and quorum keep the limits of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cafe.latency.base import Floats

if TYPE_CHECKING:
    from cafe.planner.deadline_search import DeadlineSearch


def explain_infeasible(search: DeadlineSearch, grid: Floats) -> str:
    """The error message that says which limit cannot be kept, and by how much it is missed.

    Args:
        search: a search that has found nothing.
        grid: the deadlines that it tried.
    """
    if not any(search.reaches(float(t)) for t in grid):
        return (
            f"The target of {search.closing} reports cannot be reached in {search.reach:.0%} of "
            f"rounds by any allowed deadline if {search.invited} clients are invited. Lower the "
            "target, invite more clients, or relax a limit on the deadline."
        )
    # All quantities are monotone in the quorum, so each one's extremes are at its ends.
    ends = sorted(set(search.quorums()))
    candidates = [search.expect(m, float(t)) for t in grid for m in ends]
    if not search.limits:
        return (
            f"No round can succeed with the quorum {search.quorum}: the probability is too small "
            "to be calculated at every deadline. Lower the quorum."
        )
    for limit in search.limits:
        best = min(candidates, key=limit.excess)
        if not limit.keeps(best):
            what = "least" if limit.sign > 0 else "most"
            value = getattr(best, limit.quantity)
            return (
                f"The limit '{limit}' cannot be kept: the {what} that any deadline and "
                f"quorum give is about {value:.4g} "
                f"(quorum {best.quorum}, deadline {best.deadline:.4g}), "
                f"off by {abs(value - limit.value):.4g}. Relax it."
            )
    candidates += [
        search.expect(m, float(t))
        for t in grid[:: max(len(grid) // 60, 1)]
        for m in _some_quorums(search)
    ]
    best = min(candidates, key=lambda e: max(limit.excess(e) for limit in search.limits))
    worst = max(search.limits, key=lambda limit: limit.excess(best))
    value = getattr(best, worst.quantity)
    return (
        "Each limit can be kept alone, but not all together: at the best compromise found "
        f"(quorum {best.quorum}, deadline {best.deadline:.4g}) '{worst}' is broken by "
        f"{abs(value - worst.value):.4g}: {worst.quantity} is {value:.4g}. Relax it or one of: "
        f"{'; '.join(str(limit) for limit in search.limits if limit is not worst)}."
    )


def _some_quorums(search: DeadlineSearch) -> list[int]:
    low, high = search.quorums()
    return sorted({int(m) for m in np.geomspace(low, high, 12).round()})
