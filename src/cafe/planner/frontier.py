"""The Pareto frontier over waste, broadcasts and age: the useful choices, before prices are set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.errors import check_flag, check_progress
from cafe.federation import Federation, total
from cafe.keywords import explain_keywords
from cafe.latency.base import Floats
from cafe.planner.deadline_grid import deadline_grid, deadline_range
from cafe.planner.to_accuracy import ToAccuracy, trimmed_inverse
from cafe.progress import ProgressCallback
from cafe.theory import Expectation, Setting
from cafe.theory.cohort_rounds import CohortRounds
from cafe.theory.presence_warnings import presence_warnings
from cafe.theory.setting import check_federation

EQUAL = 1e-3  # relative differences below this are ignored
RARE = 0.01  # expected reports of a round below which a deadline is not of interest
MOST_CHOICES = 12
ALIKE = 0.01  # relative differences below this do not matter for a choice
APART = 1.05  # the least factor between the deadlines of two choices, except the ends and the knee
FEW = 0.05  # a choice has at least this share of the reports that can ever arrive ...
NEARLY_ALL = 0.999  # ... and only one choice has more than this share


@dataclass(frozen=True, eq=False)
class Frontier:
    """The choices that no other choice beats in waste, broadcasts and age at once.

    Relative differences below a thousandth are ignored.

    Attributes:
        points: every such choice, by growing deadline; waste and broadcasts count per update, as
            in J.
        warnings: what the expected quantities do not account for; usually empty.
        tried: all deadlines that were tried, by growing deadline.
    """

    points: tuple[Expectation, ...]
    warnings: tuple[str, ...] = ()
    tried: tuple[Expectation, ...] = ()

    def column(self, name: str) -> list[float]:
        """One quantity along the frontier, by growing deadline."""
        return [getattr(point, name) for point in self.points]

    @cached_property
    def choices(self) -> tuple[Expectation, ...]:
        """At most 12 deadlines to choose from, about evenly spaced in their logarithm.

        No other deadline beats one of them in waste, broadcasts and age at once, where waste and
        broadcasts count per used report: an update with two reports is worth less than one with
        fifty. Two ages count: the mean over all clients, and, as in the default goal of a plan,
        the mean over all but the slowest tenth. Relative differences below a hundredth are
        ignored. Deadlines by which almost no client reports are left out, and so are those that
        wait for the last thousandth of the reports. The knee is one of the choices.
        """
        usable = self._usable
        times = np.log([point.deadline for point in usable])
        first, knee, last = 0, usable.index(self.knee), len(usable) - 1
        apart = max((times[-1] - times[0]) / (MOST_CHOICES - 2), np.log(APART))
        picked = {first, knee, last}
        for i, t in enumerate(times):
            if all(abs(t - times[other]) >= apart for other in picked):
                picked.add(i)
        return tuple(usable[i] for i in sorted(picked))

    @cached_property
    def knee(self) -> Expectation:
        """The choice with the least time to a given accuracy, the default goal of a plan.

        A shorter deadline loses more reports than it saves time, a longer one the reverse.
        """
        goal = ToAccuracy().completed(self.tried[0].setting.federation)
        return min(self._usable, key=goal.cost)

    @cached_property
    def _usable(self) -> tuple[Expectation, ...]:
        """The deadlines that no other one beats, from a few reports to nearly all."""
        who = self.tried[0].setting.federation
        reach = total(who.number, np.broadcast_to(who.availability, (who.kinds,)))
        fewest = max(min(1.0, reach / 2), FEW * reach)
        enough = [e for e in self.tried if e.expected_reports >= fewest]
        full = sum(e.expected_reports < NEARLY_ALL * reach for e in enough)
        enough = enough[: full + 1]
        costs = np.array([_costs_per_report(e) for e in enough]).reshape(-1, 4)
        useful = np.isfinite(costs[:, :3]).all(axis=1)  # the mean age may be infinite
        kept = [
            e for i, e in enumerate(enough) if useful[i] and not _dominated(costs[i], costs, ALIKE)
        ]
        return tuple(kept) or self.tried[-1:]


def _costs_per_report(e: Expectation) -> tuple[float, float, float, float]:
    """Waste and broadcasts per used report, and the age without and with the slowest tenth."""
    used = e.setting.used
    inverse = trimmed_inverse(e.setting.number, e.setting.participation)
    per_report = 1.0 / used if used > 0 else np.inf
    return e.waste_per_gradient, per_report, e.round_duration * (inverse + 0.5), e.age


@explain_keywords
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

    :attr:`Frontier.choices` has at most 12 deadlines to choose from, :attr:`Frontier.points` all.

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
        >>> len(found.choices), round(found.knee.deadline, 1)
        (9, 1.3)
    """
    check_federation(federation)
    check_flag("close_when_all", close_when_all)
    check_progress(progress)
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
    return Frontier(tuple(kept), warnings, tuple(points))


def _dominated(cost: Floats, others: Floats, equal: float = EQUAL) -> bool:
    no_worse = (others <= (1 + equal) * cost).all(axis=1)
    return bool((no_worse & (others < (1 - equal) * cost).any(axis=1)).any())
