"""The deadline that costs least on average over the federations that explain the observations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cafe.control.estimate import EstimatedClients
from cafe.errors import InfeasibleError
from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.planner.deadline_search import DeadlineSearch, Optimum
from cafe.planner.goals import Goal
from cafe.planner.infeasible import explain_infeasible
from cafe.planner.limits import Limit
from cafe.planner.safe_quorum import with_safe_quorum
from cafe.planner.to_accuracy import ToAccuracy

_COARSE = 24  # deadlines in the first grid ...
_FINE = 6  # ... and between the neighbours of the best of them
_BEYOND = 6.0  # how far beyond the longest wait deadlines are considered
_FIRST = 0.02  # the share of all clients expected by the shortest deadline, at least one report
_WORST = 50.0  # the largest relative cost that counts, so that no single alternative decides


@dataclass(frozen=True, eq=False)
class RobustPlan:
    """A deadline and a quorum, and how much the alternatives disagree about them.

    Attributes:
        search: the search in the most probable federation.
        deadline: the deadline.
        quorum: the quorum.
        cost: the cost in the most probable federation.
        regret_of_longer: how much more the deadline costs than a longer one, on average over the
            alternatives, as a share; alternatives with a shorter best deadline count as 0.
        wanted: the best deadlines of the alternatives, rising.
    """

    search: DeadlineSearch
    deadline: float
    quorum: int
    cost: float
    regret_of_longer: float
    wanted: Floats

    @property
    def goal(self) -> Goal:
        """What is minimised."""
        return self.search.goal

    @property
    def federation(self) -> Federation:
        """The most probable federation."""
        return self.search.federation


def robust_plan(found: EstimatedClients, goal: Goal, limits: tuple[Limit, ...]) -> RobustPlan:
    """The plan for an estimate.

    Raises:
        InfeasibleError: if no plan keeps the limits in the most probable federation.
    """
    search = DeadlineSearch(found.federation, goal, limits)
    others = [replace(search, federation=each, limits=()) for each in found.alternatives]
    grid = _grid(search, found)
    costs = _costs(search, others, grid)
    if not np.isfinite(costs[0]).any():
        raise InfeasibleError(explain_infeasible(search, grid))
    order = int(np.argmin(_mean_cost(costs)))
    low, high = grid[max(order - 1, 0)], grid[min(order + 1, len(grid) - 1)]
    fine = np.geomspace(low, high, _FINE + 2)[1:-1] if high > low else np.empty(0)
    grid = np.concatenate([grid, fine])
    costs = np.concatenate([costs, _costs(search, others, fine)], axis=1)
    relative = _mean_cost(costs)
    at = int(np.argmin(relative))
    deadline = float(grid[at])
    optimum = search.at(deadline)
    assert optimum is not None
    if isinstance(goal, ToAccuracy):
        optimum = with_safe_quorum(search, optimum)
    wanted = grid[np.argmin(costs[1:], axis=1)] if others else np.array([deadline])
    regret = 0.0
    if others:
        excess = np.minimum(costs[1:, at] / costs[1:].min(axis=1), _WORST) - 1.0
        regret = float(np.mean(np.where(wanted > deadline, np.nan_to_num(excess), 0.0)))
    return RobustPlan(search, deadline, optimum.quorum, optimum.cost, regret, np.sort(wanted))


def _grid(search: DeadlineSearch, found: EstimatedClients) -> Floats:
    """Deadlines evenly spaced in the logarithm, within the limits."""
    federation = found.federation
    low, high = 1e-3 * found.longest, _BEYOND * found.longest
    weight = federation.number * np.broadcast_to(federation.availability, (federation.kinds,))
    least = 0.05
    if isinstance(search.goal, ToAccuracy):
        least = min(max(_FIRST * federation.clients, 1.0), 0.2 * float(weight.sum()))
    while low < high and float(np.sum(weight * federation.latency.cdf(low))) < least:
        low *= 1.2
    low, high = search.allowed(min(low, high), high)
    return np.geomspace(low, high, _COARSE) if high > low else np.array([high])


def _costs(search: DeadlineSearch, others: list[DeadlineSearch], grid: Floats) -> Floats:
    """A row of costs for each federation; infinite where the limits are broken."""
    rows = np.full((1 + len(others), len(grid)), np.inf)
    for column, deadline in enumerate(grid.tolist()):
        here = search.at(deadline)
        if here is None:
            continue
        rows[0, column] = here.cost
        for row, other in enumerate(others, 1):
            rows[row, column] = _cost_at(other, here, deadline)
    return rows


def _cost_at(other: DeadlineSearch, here: Optimum, deadline: float) -> float:
    cost = other.goal.cost(other.expect(here.quorum, deadline))
    return cost if np.isfinite(cost) else np.inf


def _mean_cost(costs: Floats) -> Floats:
    """The mean over federations of the cost relative to the least one of each."""
    least = np.min(np.where(np.isfinite(costs), costs, np.inf), axis=1, keepdims=True)
    usable = np.isfinite(least[:, 0]) & (least[:, 0] > 0)
    if not usable.any():
        return np.asarray(costs[0])
    relative = np.minimum(costs[usable] / least[usable], _WORST)
    relative[:, ~np.isfinite(costs[0])] = np.inf
    return np.asarray(relative.mean(axis=0))
