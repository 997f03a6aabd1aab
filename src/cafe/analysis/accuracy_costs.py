"""What policies spent until their models reached an accuracy, also if some runs never did.

A run that did not reach it counts with all that it spent, which is less than it would have needed.
A mean with such runs is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cafe.analysis import statistics
from cafe.analysis.run_costs import spent_in_all
from cafe.analysis.run_groups import RunGroup
from cafe.analysis.statistics import Estimate
from cafe.latency.base import Floats

Bound = Literal["", "≥", "≤"]  # the true value is the estimate, at least it, or at most it
STEPS = 20  # the default accuracy is a multiple of 1 / STEPS


@dataclass(frozen=True)
class Bounded:
    """An estimate of a value, or of a bound of it.

    Attributes:
        estimate: the estimate.
        bound: empty for the value itself.
    """

    estimate: Estimate
    bound: Bound = ""


@dataclass(frozen=True)
class AccuracyCosts:
    """What the runs of one policy spent until they reached an accuracy.

    Attributes:
        group: the runs.
        accuracy: the accuracy to reach.
    """

    group: RunGroup
    accuracy: float

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.group.runs)

    @property
    def reached(self) -> int:
        """The number of runs that reached the accuracy."""
        return sum(math.isfinite(spent.time) for spent in self.group.spent_until(self.accuracy))

    @property
    def complete(self) -> bool:
        """Whether all runs reached it."""
        return self.reached == self.runs

    @property
    def gap(self) -> float:
        """The longest time between the evaluation that reached it and the one before; 0 if none."""
        gaps = [spent.gap for spent in self.group.spent_until(self.accuracy)]
        return max((gap for gap in gaps if math.isfinite(gap)), default=0.0)

    def values(self, what: str) -> Floats:
        """An attribute of :class:`Spent` for each run; all that it spent if it never got there."""
        pairs = zip(self.group.spent_until(self.accuracy), self.group.histories, strict=True)
        each = [s if math.isfinite(s.time) else spent_in_all(history) for s, history in pairs]
        return np.array([getattr(spent, what) for spent in each])

    def cost(self, what: str) -> Bounded:
        """The mean of an attribute of :class:`Spent`, or a lower bound of it."""
        return Bounded(statistics.mean(self.values(what)), "" if self.complete else "≥")

    def minus(self, other: AccuracyCosts, what: str) -> Bounded | None:
        """The mean difference to another policy, seed by seed if both have the same seeds.

        None if both have runs that did not reach the accuracy: then not even a bound is known.
        """
        if not (self.complete or other.complete):
            return None
        apart = statistics.paired if self.group.seeds == other.group.seeds else statistics.unpaired
        bound: Bound = "" if self.complete and other.complete else "≤" if self.complete else "≥"
        return Bounded(apart(self.values(what), other.values(what)), bound)


def common_accuracy(groups: Sequence[RunGroup]) -> float | None:
    """The highest multiple of 5% that most policies reached in all of their runs; None without one.

    A policy with a run without updates does not count: an untrained model has not learned its
    accuracy.
    """
    levels = sorted((_lowest_best(group) for group in groups if _moved(group)), reverse=True)
    level = levels[len(levels) // 2] if levels else -1.0
    steps = int(level * STEPS + 1e-9) if level > 0 else 0
    return steps / STEPS if steps else None


def _moved(group: RunGroup) -> bool:
    return all(history.updates for history in group.histories)


def _lowest_best(group: RunGroup) -> float:
    """The highest accuracy that all runs reached; -1 without one."""
    return min(
        -1.0 if h.curve is None else float(np.fmax.reduce(h.curve.accuracy, initial=-1.0))
        for h in group.histories
    )
