"""How much more each rule costs than the best of the grid search, from the rows of the study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from rules import GOALS, PAPER_PRICES, STATED_PRICES
from trials import Settings, settings_of

Row = dict[str, Any]
CAP = 10.0  # a run that misses the target counts as this many times the best
RESAMPLED = 2000  # bootstrap samples
LEVEL = 0.9  # of all intervals


@dataclass(frozen=True)
class Regret:
    """The extra cost of a rule on a federation, as a share of the cost of the grid's best.

    Attributes:
        fleet: the federation's name.
        logs: for each seed, the logarithm of the rule's cost over that of the grid's best.
        missed: runs that missed the target.
        rules: the settings; None if the rule gives none.
    """

    fleet: str
    logs: tuple[float, ...]
    missed: int
    rules: tuple[Any, ...] | None

    @property
    def value(self) -> float:
        """The extra cost by geometric means over seeds."""
        return math.exp(float(np.mean(self.logs))) - 1

    @property
    def interval(self) -> tuple[float, float]:
        """A 90 % interval, from the spread over seeds."""
        from scipy.special import stdtrit

        count = len(self.logs)
        error = float(np.std(self.logs, ddof=1)) / math.sqrt(count)
        width = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error
        centre = float(np.mean(self.logs))
        return math.exp(centre - width) - 1, math.exp(centre + width) - 1


class Results:
    """The rows of a study, sorted by federation.

    Args:
        rows: all rows; of two with the same meaning the last one counts.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.fleets = [*dict.fromkeys(r["fleet"] for r in rows if r["kind"] == "judge")]
        self._own = {name: [r for r in rows if r["fleet"] == name] for name in self.fleets}

    def goal(self, fleet: str) -> Row:
        """The row of the target and of the measured constants."""
        return next(r for r in self._of(fleet) if r["kind"] == "target")

    def grid(self, fleet: str) -> list[Row]:
        """The rows of the grid search."""
        return [r for r in self._of(fleet) if r["kind"] == "grid"]

    def names(self, fleet: str) -> dict[str, Any]:
        """The settings of all rules, by name."""
        return dict([r for r in self._of(fleet) if r["kind"] == "names"][-1]["rules"])

    def best(self, fleet: str, goal: str) -> Row:
        """The row of the grid's best."""
        return min(self.grid(fleet), key=lambda row: cost_of(row, goal))

    def chosen(self, fleet: str, rule: str, goal: str) -> Row | None:
        """The row of a rule's settings on a federation; None if the rule gives none.

        Of the paper's prices, those that cost the least with the seeds for choosing.
        """
        tries = {tuple(r["rules"]): r for r in self._of(fleet) if r["kind"] == "rule"}
        names = self.names(fleet)
        if rule == PAPER_PRICES:
            known = [n for n in names if n.startswith("J, ")]
            return min((tries[tuple(names[n])] for n in known), key=lambda r: cost_of(r, goal))
        name = rule if rule in names or rule == STATED_PRICES else f"{rule}: {goal}"
        settings = names.get(name)
        return None if settings is None else tries[tuple(settings)]

    def to_judge(self, fleet: str, rules: Sequence[str]) -> list[tuple[Settings, float]]:
        """The settings and learning rates that must be judged."""
        found = {}
        for goal in GOALS:
            chosen = [self.best(fleet, goal)]
            chosen += [r for rule in rules if (r := self.chosen(fleet, rule, goal)) is not None]
            for row in chosen:
                rate, settings = rate_of(row, goal), row["rules"]
                found[tuple(settings), rate] = (settings_of(settings), rate)
        return [*found.values()]

    def judged_row(self, fleet: str, row: Row, goal: str) -> Row:
        """The row of a try's settings, with the seeds for judging."""
        wanted = (row["rules"], rate_of(row, goal))
        own = (r for r in self._of(fleet) if r["kind"] == "judge")
        return next(r for r in own if (r["rules"], r["rate"]) == wanted)

    def judged(self, fleet: str, row: Row, goal: str) -> list[float | None]:
        """The costs with the seeds for judging; None for one that misses the target."""
        return list(self.judged_row(fleet, row, goal)["time" if goal == "time" else "work"])

    def regret(self, fleet: str, rule: str, goal: str) -> Regret | None:
        """The regret of a rule; None if it gives no settings."""
        row = self.chosen(fleet, rule, goal)
        if row is None:
            return None
        least = self.judged(fleet, self.best(fleet, goal), goal)
        known = [x for x in least if x is not None]
        typical = math.exp(float(np.mean(np.log(known))))
        costs = self.judged(fleet, row, goal)
        logs = [
            math.log((CAP * typical if own is None else own) / (other or CAP * typical))
            for own, other in zip(costs, least, strict=False)  # the controller has fewer seeds
        ]
        return Regret(fleet, tuple(logs), sum(x is None for x in costs), tuple(row["rules"]))

    def _of(self, fleet: str) -> list[Row]:
        return self._own.get(fleet) or [r for r in self.rows if r["fleet"] == fleet]


def cost_of(row: Row, goal: str) -> float:
    """The cost of a try with its best learning rate, with the seeds for choosing."""
    found = row["best"][GOALS.index(goal)][1]
    return math.inf if found is None else float(found)


def rate_of(row: Row, goal: str) -> float:
    """The best learning rate of a try."""
    return float(row["best"][GOALS.index(goal)][0])


@dataclass(frozen=True)
class Summary:
    """The regrets of a rule for a goal over all federations.

    Attributes:
        rule: the rule.
        regrets: one for each federation on which the rule gives settings.
        without: federations on which it gives none.
    """

    rule: str
    regrets: tuple[Regret, ...]
    without: int

    @property
    def median(self) -> float:
        """The median regret."""
        return float(np.median([r.value for r in self.regrets]))

    @property
    def worst(self) -> Regret:
        """The largest regret."""
        return max(self.regrets, key=lambda r: r.value)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """A 90 % interval of the median, by a bootstrap over federations and seeds."""
        rng = np.random.default_rng(1)
        logs = np.array([r.logs for r in self.regrets])
        count, seeds = logs.shape
        fleets = rng.integers(count, size=(RESAMPLED, count))
        some = rng.integers(seeds, size=(RESAMPLED, count, seeds))
        medians = np.median(logs[fleets[..., None], some].mean(axis=2), axis=1)
        low, high = np.quantile(np.expm1(medians), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)

    def within(self, most: float) -> int:
        """The number of federations with at most this regret."""
        return sum(r.value <= most for r in self.regrets)

    @property
    def missed(self) -> int:
        """The number of federations on which a run missed the target."""
        return sum(r.missed > 0 for r in self.regrets)


def summarised(results: Results, rule: str, goal: str) -> Summary:
    """The regrets of a rule over all federations."""
    found = [results.regret(fleet, rule, goal) for fleet in results.fleets]
    known = tuple(r for r in found if r is not None)
    return Summary(rule, known, len(found) - len(known))
