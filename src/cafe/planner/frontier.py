"""The Pareto frontier over waste, broadcasts and age: what can be had, before any price is set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.federation import Federation
from cafe.planner.goals import Prices
from cafe.planner.search import Progress, Search
from cafe.theory import Expectation


@dataclass(frozen=True)
class Frontier:
    """Choices of which none is better than another in waste, broadcasts and age at once."""

    points: tuple[Expectation, ...]

    def column(self, name: str) -> list[float]:
        """One quantity along the frontier, by growing deadline."""
        return [getattr(point, name) for point in self.points]


def frontier(
    federation: Federation,
    *,
    quorum: int | None = None,
    close_when_all: bool = False,
    progress: Progress | None = None,
) -> Frontier:
    """The frontier over all deadlines and, unless it is given, all quorums.

    At any deadline the quorum 1 has the least waste, broadcasts and age (Corollaries 1 and 2), so
    the quorum needs no search.
    """
    search = Search(federation, Prices(0.0, 0.0), (), quorum or 1, close_when_all)
    points, grid = [], search.grid()
    for i, deadline in enumerate(grid):
        points.append(search.expect(quorum or 1, float(deadline)))
        if progress:
            progress((i + 1) / len(grid))
    costs = np.array([[p.waste, p.broadcasts, p.age] for p in points])
    useful = np.isfinite(costs).all(axis=1)
    kept = [p for i, p in enumerate(points) if useful[i] and not _dominated(costs[i], costs)]
    return Frontier(tuple(kept))


def _dominated(cost: np.ndarray, others: np.ndarray) -> bool:
    no_worse = (others <= cost).all(axis=1)
    return bool((no_worse & (others < cost).any(axis=1)).any())
