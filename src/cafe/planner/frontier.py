"""The Pareto frontier over waste, broadcasts and age: what can be had, before any price is set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.planner.deadline_search import Progress, deadline_grid, deadline_range
from cafe.theory import Expectation, expect
from cafe.theory.presence_warnings import presence_warnings
from cafe.theory.setting import check_federation

EQUAL = 1e-3  # nobody would bear twice the waste for a millionth of a broadcast
RARE = 0.01  # expected reports of a round below which no deadline is of interest


@dataclass(frozen=True)
class Frontier:
    """Choices of which none is better than another in waste, broadcasts and age at once.

    Differences of a thousandth count as none.

    Attributes:
        points: the choices, by growing deadline.
        warnings: what their figures leave out; often nothing.
    """

    points: tuple[Expectation, ...]
    warnings: tuple[str, ...] = ()

    def column(self, name: str) -> list[float]:
        """One quantity along the frontier, by growing deadline."""
        return [getattr(point, name) for point in self.points]


def frontier(
    federation: Federation,
    *,
    quorum: int | None = None,
    close_when_all: bool = False,
    steps: int = 1,
    progress: Progress | None = None,
) -> Frontier:
    """The frontier over all deadlines and, unless it is given, all quorums.

    At any deadline the quorum 1 has the least waste, broadcasts and age (Corollaries 1 and 2), so
    the quorum needs no search. A presence counts by its long-run share of time.

    Args:
        federation: who takes part.
        quorum: keep this quorum.
        close_when_all: rounds close as soon as everybody has reported, instead of lasting until the
            deadline.
        steps: gradient steps that a client takes in a round; they take time where the federation's
            ``per_step`` is above 0.
        progress: called with the finished share of the work.
    """
    check_federation(federation)
    warnings, federation = presence_warnings(federation), federation.at_steps(steps).steady
    chosen = 1 if quorum is None else quorum
    target = federation.clients if close_when_all else None
    points, grid = [], deadline_grid(federation, *deadline_range(federation, RARE))
    for i, deadline in enumerate(grid):
        points.append(expect(federation, quorum=chosen, deadline=float(deadline), target=target))
        if progress:
            progress((i + 1) / len(grid))
    costs = np.array([[p.waste, p.broadcasts, p.age] for p in points])
    useful = np.isfinite(costs).all(axis=1)
    kept = [p for i, p in enumerate(points) if useful[i] and not _dominated(costs[i], costs)]
    return Frontier(tuple(kept), warnings)


def _dominated(cost: Floats, others: Floats) -> bool:
    no_worse = (others <= (1 + EQUAL) * cost).all(axis=1)
    return bool((no_worse & (others < (1 - EQUAL) * cost).any(axis=1)).any())
