"""A setting with its runs: its cost, its quantities, and the limits that it breaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cafe.analysis.statistics import Estimate, paired
from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.planner.goals import Prices
from cafe.planner.limits import Limit
from cafe.planner.to_accuracy import MISSED, ToAccuracy
from cafe.tuning.measured_costs import (
    MEASURED,
    Measured,
    cost_of,
    jackknife,
    quantity_of,
)
from cafe.tuning.run_totals import RunTotals
from cafe.tuning.search_points import PolicySetting

LEVEL = 0.9  # of all intervals
SEEN = 5.0  # merges in all runs, below which a client's participation is hardly known
CHOSEN = ("deadline", "quorum", "cohort")  # limits on these are limits on the recipe's arguments


@dataclass(frozen=True)
class SearchGoal:
    """What a search minimises, and within which limits.

    Attributes:
        cost: the goal.
        limits: the limits to keep.
        asynchronous: whether the policy's clients work on when an update is made.
    """

    cost: Prices | ToAccuracy
    limits: tuple[Limit, ...]
    asynchronous: bool


def check_limits(limits: Sequence[Limit], name: str, parameters: Sequence[str]) -> None:
    """Raise an error for a limit on a quantity that runs of a policy do not have."""
    for limit in limits:
        if limit.quantity in MEASURED or limit.quantity in parameters:
            continue
        if limit.quantity in CHOSEN:
            raise InputError(
                f"The policy {name} has no {limit.quantity}, so there can be no limit on it. "
                f"Remove '{limit}'."
            )
        known = [*MEASURED, *(each for each in CHOSEN if each in parameters)]
        raise InputError(
            f"A plan by simulation has no limit on {limit.quantity}: runs do not measure it well. "
            f"Known: {', '.join(sorted(known))}."
        )


@dataclass(frozen=True, eq=False)
class MeasuredSetting:
    """A setting, its runs, and what they cost.

    Attributes:
        setting: the arguments of the recipe.
        goal: the goal and the limits.
        runs: the totals of its runs.
    """

    setting: PolicySetting
    goal: SearchGoal
    runs: tuple[RunTotals, ...]

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the recipe."""
        return dict(self.setting.parameters)

    @cached_property
    def measured(self) -> Measured:
        """The cost, and a value per run."""
        goal = self.goal
        return jackknife(
            self.runs,
            lambda runs: cost_of(goal.cost, runs, asynchronous=goal.asynchronous),
        )

    @property
    def cost(self) -> float:
        """The cost of all runs together."""
        return self.measured.value

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the cost; NaN if the cost is infinite."""
        return interval_of(self.measured.estimate)

    @cached_property
    def quantities(self) -> dict[str, Estimate]:
        """The measured quantities by name, each with its standard error."""
        return {
            name: jackknife(self.runs, partial(quantity_of, name)).estimate for name in MEASURED
        }

    @cached_property
    def excess(self) -> float:
        """How much the limits are broken, relative to their values; 0 if they are kept."""
        return sum(max(limit.excess_of(self._value(limit)), 0.0) for limit in self.goal.limits)

    @cached_property
    def uncertain_limits(self) -> tuple[Limit, ...]:
        """The limits that lie within the interval of their quantity."""
        found = []
        for limit in self.goal.limits:
            if limit.quantity in MEASURED:
                low, high = interval_of(self.quantities[limit.quantity])
                if low < limit.value < high:
                    found.append(limit)
        return tuple(found)

    @cached_property
    def _merged(self) -> Floats:
        """How often each client that counts was merged, in all runs."""
        merged: Floats = np.sort(np.sum([run.merged for run in self.runs], axis=0))
        ignored = isinstance(self.goal.cost, ToAccuracy)
        return merged[round(MISSED * len(merged)) :] if ignored else merged

    @property
    def unseen(self) -> int:
        """How many clients that count were merged so rarely that the cost is a lower bound."""
        return int(np.count_nonzero(self._merged < SEEN))

    @property
    def never_merged(self) -> int:
        """How many clients that count were not merged in any run."""
        return int(np.count_nonzero(self._merged == 0))

    @property
    def rank(self) -> tuple[float, float]:
        """A key for sorting: settings that keep the limits come first, then the cheapest."""
        return (0.0, self.cost) if self.excess <= 0 else (self.excess, self.cost)

    def minus(self, other: MeasuredSetting) -> Estimate:
        """The mean difference of the costs over the seeds that both have run, paired by seed."""
        count = min(len(self.runs), len(other.runs))
        mine, others = (replace(each, runs=each.runs[:count]) for each in (self, other))
        return paired(mine.measured.by_run, others.measured.by_run)

    def is_worse_than(self, other: MeasuredSetting) -> bool:
        """Whether it is worse, and the 90 % interval of the difference leaves out 0."""
        if self.rank[0] != other.rank[0]:
            return self.rank > other.rank
        if not np.isfinite(self.cost):
            return bool(np.isfinite(other.cost))
        return interval_of(self.minus(other))[0] > 0

    def _value(self, limit: Limit) -> float:
        if limit.quantity in MEASURED:
            return quantity_of(limit.quantity, self.runs)
        return float(self.setting.parameters[limit.quantity])


def interval_of(estimate: Estimate) -> tuple[float, float]:
    """The 90 % interval of an estimate; NaN if its standard error is not known."""
    half = estimate.interval(LEVEL)
    return estimate.mean - half, estimate.mean + half
