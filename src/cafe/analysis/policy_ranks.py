"""The policies of one scenario, ranked by the time until their models reached an accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cafe.analysis import statistics
from cafe.analysis.accuracy_costs import AccuracyCosts, Bounded, common_accuracy
from cafe.analysis.run_groups import RunGroup

Measure = Literal["time", "accuracy", "loss"]


@dataclass(frozen=True)
class Place:
    """The place of a policy.

    Attributes:
        rank: its rank, from 1. Policies with equal costs have the same rank.
        group: its runs.
        costs: what it spent until it reached the accuracy; None if there is none to reach.
        behind: the difference to the first policy, which is positive if this one is worse; None for
            the first one, and if it is not known.
        clear: whether it is worse by more than two standard errors; None if that is not known.
    """

    rank: int
    group: RunGroup
    costs: AccuracyCosts | None
    behind: Bounded | None
    clear: bool | None


@dataclass(frozen=True)
class Leaderboard:
    """Policies, the best first.

    Attributes:
        measure: what ranks them: the ``time`` to the accuracy, or the final ``accuracy`` or
            ``loss``.
        accuracy: the accuracy to reach; None if the final one counts.
        places: the policies.
    """

    measure: Measure
    accuracy: float | None
    places: Sequence[Place]

    def ranks(self, what: str) -> list[int]:
        """The rank of each policy by another attribute of :class:`Spent`."""
        keys = [_cost_key(place.costs, what) for place in self.places if place.costs is not None]
        return [1 + sum(other < key for other in keys) for key in keys]


def make_leaderboard(
    groups: Sequence[RunGroup], accuracy: float | None = None
) -> Leaderboard | None:
    """Rank the policies of one scenario; None if no model was evaluated.

    Args:
        groups: the runs of each policy.
        accuracy: the accuracy to reach; the one of :func:`common_accuracy` if left out.
    """
    goal = common_accuracy(groups) if accuracy is None else accuracy
    learned = [
        what for what in ("accuracy", "loss") if any(_is_known(group, what) for group in groups)
    ]
    if goal is not None and "accuracy" in learned:
        return _by_cost(groups, goal)
    return _by_score(groups, "accuracy" if "accuracy" in learned else "loss") if learned else None


def _by_cost(groups: Sequence[RunGroup], goal: float) -> Leaderboard:
    costs = [AccuracyCosts(group, goal) for group in groups]
    keys = {id(each): _cost_key(each, "time") for each in costs}
    first, *others = sorted(costs, key=lambda each: keys[id(each)])
    places = [Place(1, first.group, first, None, None)]
    for each in others:
        behind, key = each.minus(first, "time"), keys[id(each)]
        rank = 1 + sum(other < key for other in keys.values())
        places.append(Place(rank, each.group, each, behind, _is_clear(behind)))
    return Leaderboard("time", goal, places)


def _cost_key(costs: AccuracyCosts, what: str) -> tuple[float, float]:
    """Policies that always reach the accuracy come first, then those that do more often."""
    return -costs.reached / costs.runs, costs.cost(what).estimate.mean


def _by_score(groups: Sequence[RunGroup], what: Literal["accuracy", "loss"]) -> Leaderboard:
    sign = -1.0 if what == "accuracy" else 1.0

    def key(group: RunGroup) -> float:
        mean = sign * group.final_estimate(what).mean
        return mean if math.isfinite(mean) else math.inf

    keys = [key(group) for group in groups]
    first, *others = sorted(groups, key=key)
    best = sign * first.final_values(what)
    places = [Place(1, first, None, None, None)]
    for group in others:
        rank = 1 + sum(other < key(group) for other in keys)
        apart = statistics.paired if group.seeds == first.seeds else statistics.unpaired
        found = apart(sign * group.final_values(what), best)
        behind = Bounded(found) if math.isfinite(found.mean) else None
        places.append(Place(rank, group, None, behind, _is_clear(behind)))
    return Leaderboard(what, None, places)


def _is_clear(behind: Bounded | None) -> bool | None:
    if behind is None or not behind.estimate.error >= 0:
        return None
    # A lower bound is enough. It is never an upper one: the first policy reached it most often.
    return behind.estimate.mean > 0 and behind.estimate.is_apart(0.0)


def _is_known(group: RunGroup, what: str) -> bool:
    return bool(np.isfinite(group.final_values(what)).any())
