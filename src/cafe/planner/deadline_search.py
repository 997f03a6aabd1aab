"""The global search for a deadline: a logarithmic grid, then a local refinement of every basin.

The cost is not convex in the deadline and can have several local minima (Sec. 6). The grid finds
the basins of all of them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation, total
from cafe.latency.base import Floats
from cafe.planner.client_groups import client_groups
from cafe.planner.deadline_grid import MANY_STEPS, deadline_grid, deadline_range, first_time
from cafe.planner.goals import Goal
from cafe.planner.infeasible import explain_infeasible
from cafe.planner.limits import Limit, allowed_quorums
from cafe.planner.polishing import polished
from cafe.planner.representatives import representatives
from cafe.progress import ProgressCallback
from cafe.theory import Expectation, Setting, expect
from cafe.theory.cohort_rounds import CohortRounds
from cafe.theory.counts import Turnout

SHALLOW = 1e-7  # a relative barrier between two minima this small is rounding error
SHALLOW_STEPS = 5e-2  # ... or, with observed times, one of the many steps of their cdf
PLATEAU = 1e-6  # a relative gain this small does not justify a longer deadline
SKETCHED = 128  # kinds of the federation on which rounds with a target are searched
MANY_KINDS = 20_000  # with more kinds than this, deadlines are searched on groups of clients ...
GROUPS = 4096  # ... of this number; the cost is then at most 1e-4 above the least in the tests
COARSE = 3e-3  # how smooth functions of time must be; the error of a cost is then about 1e-5
NEARBY = (1.0, 1.003, 0.997, 1.01, 0.99, 1.03, 0.97)  # factors of deadlines to try if limits break


@dataclass(frozen=True)
class Optimum:
    """A local optimum: a deadline and quorum whose cost no nearby choice improves."""

    quorum: int
    deadline: float
    cost: float


@dataclass(frozen=True, eq=False)
class DeadlineSearch:
    """The search for a deadline and a quorum.

    Attributes:
        federation: the clients.
        goal: the cost to minimise.
        limits: the limits that a choice must keep.
        quorum: a fixed quorum; if None, the quorum is chosen too.
        close_when_all: whether rounds close as soon as all invited clients have reported.
        cohort: how many clients are invited; None invites all of them.
        target: the number of reports at which rounds close; None waits until the deadline.
        reach: the least probability that a round reaches the target by its deadline.
        turnouts: of all clients by time, shared by searches of the same federation; their integrals
            over time are quick and not exact.
    """

    federation: Federation
    goal: Goal
    limits: tuple[Limit, ...] = ()
    quorum: int | None = None
    close_when_all: bool = False
    cohort: int | None = None
    target: int | None = None
    reach: float = 0.0
    turnouts: dict[float, Turnout] | None = field(default=None, repr=False)

    def expect(self, quorum: int, deadline: float) -> Expectation:
        """The expected quantities with this quorum and deadline."""
        if self._rounds is not None:
            setting = Setting(
                self.federation, quorum, deadline, self.closing, self.cohort, self._rounds
            )
            return Expectation(setting)
        return expect(
            self.federation,
            quorum=quorum,
            deadline=deadline,
            target=self.closing,
            cohort=self.cohort,
        )

    @property
    def invited(self) -> int:
        """The number of clients that are invited in a round."""
        return self.federation.clients if self.cohort is None else self.cohort

    @property
    def closing(self) -> int | None:
        """The number of reports at which a round closes; None if it waits until the deadline."""
        return self.invited if self.close_when_all and self.target is None else self.target

    @cached_property
    def _rounds(self) -> CohortRounds | None:
        """What rounds with different deadlines share; None for rounds without cohort and target."""
        if self.closing is None or (self.cohort is None and self.target is None):
            return None
        if self.turnouts is None:
            return CohortRounds(self.federation, self.invited, self.closing)
        origin, _ = deadline_range(self.federation)
        return CohortRounds(
            self.federation, self.invited, self.closing, self.turnouts, origin, COARSE
        )

    def reaches(self, deadline: float) -> bool:
        """Whether rounds with this deadline reach the target often enough."""
        if self.reach == 0.0 or self._rounds is None:
            return True
        missed, _ = self._rounds.open(deadline)
        return 1.0 - missed >= self.reach

    @cached_property
    def sketch(self) -> DeadlineSearch:
        """The same search on fewer kinds of client, if this one is slow; its costs are near."""
        kinds = self.federation.kinds
        if self.target is None and self.closing is None:
            if kinds <= MANY_KINDS or self.limits:  # the edge of a limit must be exact
                return self
            return replace(self, federation=client_groups(self.federation, GROUPS))
        if self.target is None or kinds <= SKETCHED:
            return self
        return replace(self, federation=representatives(self.federation, SKETCHED), turnouts={})

    def some_deadlines(self, shares: Sequence[float]) -> list[float]:
        """Deadlines by which these shares of all reports arrive, within the limits."""
        low, high = self.allowed(*deadline_range(self.federation))
        weight = self.federation.number * np.broadcast_to(
            self.federation.availability, (self.federation.kinds,)
        )
        found = []
        for share in shares:
            early, late = low, high
            while late > 1.001 * early:
                middle = (early * late) ** 0.5
                arrived = total(weight, self.federation.latency.cdf(middle))
                early, late = (early, middle) if arrived >= share * weight.sum() else (middle, late)
            found.append(late)
        return sorted(set(found))

    def quorums(self) -> tuple[int, int]:
        """The smallest and largest quorum to choose from, before limits apply."""
        return (self.quorum, self.quorum) if self.quorum else (1, self.closing or self.invited)

    def at(self, deadline: float) -> Optimum | None:
        """The best quorum at a deadline, or None if no quorum keeps the limits."""
        if not self.reaches(deadline):
            return None
        low, high = allowed_quorums(
            lambda m: self.expect(m, deadline), *self.quorums(), self.limits
        )
        if low > high:
            return None
        first = self.expect(low, deadline)
        best = low if low == high else self.goal.quorum(first, low, high)
        cost = self.goal.cost(first if best == low else self.expect(best, deadline))
        return Optimum(best, deadline, cost) if np.isfinite(cost) else None

    @cached_property
    def deadlines(self) -> tuple[float, float]:
        """The shortest and longest deadline to consider, within the limits on the deadline."""
        low, high = deadline_range(self.federation)
        if not self.limits:
            low, high = self._narrowed(low, high)
        return self.allowed(low, high)

    def allowed(self, low: float, high: float) -> tuple[float, float]:
        """The range within the limits on the deadline."""
        own = [limit for limit in self.limits if limit.quantity == "deadline"]
        longest = [limit.value for limit in own if limit.sign > 0]
        shortest = [limit.value for limit in own if limit.sign < 0]
        if longest and shortest and min(longest) < max(shortest):
            raise InfeasibleError(
                f"The limits on the deadline exclude each other: at least {max(shortest):g} and "
                f"at most {min(longest):g}, which is {max(shortest) - min(longest):g} too little. "
                "Relax one of them."
            )
        low, high = max([low, *shortest]), max([high, *shortest])
        return min([low, *longest]), min([high, *longest])

    def _narrowed(self, low: float, high: float) -> tuple[float, float]:
        """The range without deadlines that ``goal.bounds`` shows to be worse than a trial."""
        tries = [self.at(t) for t in np.geomspace(low, high, 12)]
        cost = min((o.cost for o in tries if o is not None), default=np.inf)
        if not np.isfinite(cost):
            return low, high
        fewest, longest = self.goal.bounds(cost)
        fewest *= self.federation.clients / self.invited
        if self.closing is None:
            high = min(high, 1.01 * longest)
        return max(low, 0.99 * first_time(self.federation, fewest, low, high)), high

    def optima(self, progress: ProgressCallback | None = None) -> list[Optimum]:
        """Every local optimum, the best first.

        With a target and many kinds of client, or with very many kinds, the deadlines are those of
        :attr:`sketch`, and the quorums and costs are exact.

        Args:
            progress: called with the finished share of the search, from 0 to 1.

        Raises:
            InfeasibleError: if no deadline and quorum keep the limits.
        """
        if self.sketch is not self and (rough := self._sketched(progress)):
            return rough
        grid = deadline_grid(self.federation, *self.deadlines)
        found: list[Optimum | None] = []
        for i, deadline in enumerate(grid):
            found.append(self.at(float(deadline)))
            if progress:
                progress((i + 1) / len(grid))
        if not any(found):
            raise InfeasibleError(explain_infeasible(self, grid))
        points = [*self._with_edges(grid, found), *self._beyond(found)]
        refined = [self._refine(points, i) for i in self._basins(points)]
        lasting = [o for o in refined if not self._vanishing(o)]
        best = min(refined, key=lambda o: o.cost)
        if best not in lasting:
            raise InputError(
                f"There is no best deadline: the cost ({self.goal.describe()}) keeps falling as "
                "the deadline shrinks to 0, since a round costs too little. "
                "Give a price or an overhead per round above 0, or a shortest deadline as a limit."
            )
        return sorted(lasting, key=lambda o: o.cost)

    def _sketched(self, progress: ProgressCallback | None) -> list[Optimum]:
        """The optima of the sketch, with exact quorums and costs.

        If a limit that the sketch keeps is broken here, deadlines nearby are tried. If none keeps
        it, there is no result without a target: the deadlines must be searched for all kinds.
        """
        exact = []
        try:
            optima = self.sketch.optima(progress)[:2]
        except InfeasibleError:
            if self.target is not None:
                raise
            return []
        for rough in optima:
            tries = (self.at(factor * rough.deadline) for factor in NEARBY)
            near = next((o for o in tries if o is not None), None)
            exact += [near if near is None or self.target is not None else polished(self, near)]
        found = [o for o in exact if o is not None]
        if not found and self.target is not None:
            grid = deadline_grid(self.federation, *self.deadlines)
            raise InfeasibleError(explain_infeasible(self.sketch, grid))
        return sorted(found, key=lambda o: o.cost)

    def _beyond(self, found: Sequence[Optimum | None]) -> list[Optimum]:
        """Deadlines beyond the grid, while the cost keeps falling and the limits allow them."""
        best = min((o.cost for o in found if o is not None), default=np.inf)
        last = found[-1]
        more: list[Optimum] = []
        while last is not None and last.cost <= best and len(more) < 1000:
            longer = self.at(1.2 * last.deadline)
            if longer is None or longer.cost >= last.cost * (1 - 1e-9):
                break
            more.append(longer)
            last, best = longer, longer.cost
        return more

    def _vanishing(self, optimum: Optimum) -> bool:
        """Whether this is only the short end of the range: a still shorter deadline is better."""
        low, _ = self.deadlines
        if optimum.deadline > low or any(
            x.quantity == "deadline" and x.sign < 0 for x in self.limits
        ):
            return False
        shorter = self.at(0.9 * low)
        return shorter is not None and shorter.cost < optimum.cost

    def _with_edges(
        self, grid: Floats, found: Sequence[Optimum | None]
    ) -> Iterator[Optimum | None]:
        """The grid's candidates, plus the last allowed deadline where a limit cuts the grid."""
        for i, here in enumerate(found):
            before = found[i - 1] if i else here
            if (before is None) != (here is None):
                inside, outside = (i, i - 1) if before is None else (i - 1, i)
                edge = self._edge(float(grid[inside]), float(grid[outside]))
                yield from (None, edge) if before is None else (edge, None)
            yield here

    def _edge(self, inside: float, outside: float) -> Optimum:
        """The choice at the last allowed deadline between an allowed one and one that is not."""
        if not self.reaches(outside):  # quick to find, without costs
            last = _bisected(self.reaches, inside, outside)
            best = self.at(last)
            if best is not None:
                return best
            outside = last
        best = self.at(_bisected(lambda t: self.at(t) is not None, inside, outside))
        assert best is not None
        return best

    def _basins(self, points: Sequence[Optimum | None]) -> list[int]:
        """Positions of the local minima; minima with only a shallow barrier between are merged."""
        costs = np.array([np.inf if p is None else p.cost for p in points])
        around = np.concatenate([[np.inf], costs, [np.inf]])
        lowest = (costs <= around[:-2]) & (costs <= around[2:]) & np.isfinite(costs)
        stairs = self.federation.latency.breaks().size > MANY_STEPS
        shallow = 1 + (SHALLOW_STEPS if stairs else SHALLOW)
        kept: list[int] = []
        for i in np.flatnonzero(lowest):
            if kept:
                last = kept[-1]
                barrier = costs[last : i + 1].max()
                if barrier <= shallow * max(costs[last], costs[i]):
                    kept[-1] = int(i) if costs[i] < costs[last] else last
                    continue
            kept.append(int(i))
        return [_left_end(points, costs, i) for i in kept]

    def _refine(self, points: Sequence[Optimum | None], i: int) -> Optimum:
        """The least cost between the neighbours of grid point ``i``, at that point's quorum."""
        from scipy.optimize import minimize_scalar

        here = points[i]
        assert here is not None
        near = [p for p in points[max(i - 1, 0) : i + 2] if p is not None]
        low, high = near[0].deadline, near[-1].deadline
        if low == high:
            return here

        def cost(log_deadline: float) -> float:
            expected = self.expect(here.quorum, float(np.exp(log_deadline)))
            kept = all(limit.keeps(expected) for limit in self.limits)
            kept = kept and self.reaches(expected.deadline)
            value = self.goal.cost(expected) if kept else np.inf
            return min(value, float(np.finfo(float).max))

        ends = (np.log(low), np.log(high))
        found = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": 1e-7})
        if found.fun < here.cost:
            return Optimum(here.quorum, float(np.exp(found.x)), float(found.fun))
        return here


def _bisected(allowed: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last allowed deadline between one that is allowed and one that is not."""
    for _ in range(60):
        middle = inside**0.5 * outside**0.5
        if abs(inside - outside) <= 1e-12 * inside:
            break
        inside, outside = (middle, outside) if allowed(middle) else (inside, middle)
    return inside


def _left_end(points: Sequence[Optimum | None], costs: Floats, i: int) -> int:
    """The left end of a wide plateau, because a longer deadline gains almost nothing there."""
    first = i
    while first > 0 and costs[first - 1] <= (1 + PLATEAU) * costs[i]:
        first -= 1
    here, there = points[i], points[first]
    wide = here is not None and there is not None and there.deadline < 0.7 * here.deadline
    return first if wide else i
