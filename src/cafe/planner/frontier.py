"""The Pareto frontier over waste, broadcasts and age: the useful choices, before prices are set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.planner.deadline_search import deadline_grid, deadline_range
from cafe.progress import ProgressCallback
from cafe.theory import Expectation, Setting
from cafe.theory.cohort_rounds import CohortRounds
from cafe.theory.presence_warnings import presence_warnings
from cafe.theory.setting import check_federation

EQUAL = 1e-3  # relative differences below this are ignored
RARE = 0.01  # expected reports of a round below which a deadline is not of interest


@dataclass(frozen=True)
class Frontier:
    """The choices that no other choice beats in waste, broadcasts and age at once.

    Relative differences below a thousandth are ignored.

    Attributes:
        points: the choices, by growing deadline.
        warnings: what the expected quantities do not account for; usually empty.
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
    cohort: int | None = None,
    target: int | None = None,
    steps: int = 1,
    progress: ProgressCallback | None = None,
) -> Frontier:
    """Compute the frontier over all deadlines and, unless one is given, all quorums.

    At any deadline the quorum 1 has the least waste, broadcasts and age (Corollaries 1 and 2), so
    no other quorum needs to be tried.

    Args:
        federation: the clients; a presence is replaced by its long-run share of time.
        quorum: keep this quorum.
        close_when_all: rounds close as soon as all clients have reported, instead of lasting until
            the deadline.
        cohort: invite this many clients in each round, drawn at random, instead of all.
        target: rounds close as soon as this many clients have reported.
        steps: gradient steps that a client takes in a round; they take time if the federation's
            ``per_step`` is above 0.
        progress: called with the finished share of the work, from 0 to 1.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> found = cafe.frontier(federation)
        >>> len(found.points), round(min(found.column("age")), 2)
        (67, 1.0)
    """
    check_federation(federation)
    warnings, federation = presence_warnings(federation, cohort), federation.at_steps(steps).steady
    chosen = 1 if quorum is None else quorum
    if close_when_all and target is None:
        target = federation.clients if cohort is None else cohort
    if target is not None and cohort is None:
        cohort = federation.clients
    rounds = None
    if target is not None and cohort is not None and not close_when_all:
        rounds = CohortRounds(federation, cohort, target)
    points, grid = [], deadline_grid(federation, *deadline_range(federation, RARE))
    for i, deadline in enumerate(grid):
        setting = Setting(federation, chosen, float(deadline), target, cohort, rounds)
        points.append(Expectation(setting))
        if progress:
            progress((i + 1) / len(grid))
    costs = np.array([[p.waste, p.broadcasts, p.age] for p in points])
    useful = np.isfinite(costs).all(axis=1)
    kept = [p for i, p in enumerate(points) if useful[i] and not _dominated(costs[i], costs)]
    return Frontier(tuple(kept), warnings)


def _dominated(cost: Floats, others: Floats) -> bool:
    no_worse = (others <= (1 + EQUAL) * cost).all(axis=1)
    return bool((no_worse & (others < (1 - EQUAL) * cost).any(axis=1)).any())
