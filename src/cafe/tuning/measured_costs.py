"""The cost of a setting, and its other quantities, from the totals of its runs.

Every cost is one number for all runs together, and a value per run for its standard error. The
values are those of the jackknife, so that they can be paired with those of other settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cafe.analysis.run_costs import RATIOS
from cafe.analysis.statistics import Estimate, mean
from cafe.latency.base import Floats
from cafe.planner.goals import Prices
from cafe.planner.to_accuracy import IDLE, MISSED, NOISE_RATIO, ToAccuracy
from cafe.tuning.run_totals import RunTotals

MEASURED_GOALS = (Prices, ToAccuracy)
MESSAGES = ("jobs", "updates")  # the ratio that no table of runs has
# Quantities of a plan that runs have too, and that a limit may be set on.
MEASURED = (
    "success_probability",
    "reports_per_update",
    "broadcasts",
    "messages",
    "waste",
    "processing_waste",
    "client_seconds",
    "age",
    "round_duration",
    "update_interval",
)


def spread_of_merges(runs: Sequence[RunTotals]) -> float:
    """The variance of merges between runs, compared with that of independent rounds.

    1 if every round decides anew who is merged, and for a single run; less if clients take turns.
    """
    if len(runs) < 2:
        return 1.0
    merged = np.array([run.merged for run in runs])
    rounds = total(runs, "rounds") / len(runs)
    means = merged.mean(axis=0)
    expected = float(np.sum(means * np.maximum(1 - means / rounds, 0.0)))
    if expected <= 0:
        return 1.0
    return float(np.clip(merged.var(axis=0, ddof=1).sum() / expected, 0.05, 2.0))


def inverse_participation(merged: Floats, rounds: float, spread: float) -> Floats:
    """1 / the probability that a client is merged in a round, for each client.

    ``rounds / merged`` is too high on average, and infinite for a client that was never merged. For
    independent rounds, (rounds + 1) / (merged + 1) has an error that falls exponentially with the
    merges. For clients that take turns nothing is too high.

    Args:
        merged: merges of each client, in all runs.
        rounds: rounds of all runs.
        spread: the result of :func:`~cafe.tuning.measured_costs.spread_of_merges`.

    Example:
        >>> import numpy as np
        >>> from cafe.tuning.measured_costs import inverse_participation
        >>> inverse_participation(np.array([50.0, 0.0]), 100.0, 1.0).round(2).tolist()
        [1.98, 101.0]
    """
    return (rounds + spread) / (merged + spread)


def trimmed_mean(values: Floats, ranking: Floats) -> float:
    """The mean over all clients but the tenth with the lowest rank.

    Args:
        values: a value per client.
        ranking: which clients are left out: those with the lowest entries.
    """
    order = np.argsort(-ranking, kind="stable")
    kept = np.clip((1 - MISSED) * len(values) - np.arange(len(values)), 0.0, 1.0)
    return float(np.sum(kept * values[order]) / kept.sum())


def mean_inverse(runs: Sequence[RunTotals]) -> float:
    """The mean of 1 / participation over all clients but the tenth that takes part least.

    The tenth is found in one half of the runs and left out in the other. If both were the same,
    clients that were unlucky would be left out.
    """
    halves = [[run for run in runs if run.seed % 2 == half] for half in (0, 1)]
    halves = halves if all(halves) else [[*runs], [*runs]]
    spread = spread_of_merges(runs)
    merged = [np.sum([run.merged for run in half], axis=0) for half in halves]
    rounds = [sum(run.amounts["rounds"] for run in half) for half in halves]
    first, second = (
        trimmed_mean(inverse_participation(merged[a], rounds[a], spread), merged[b])
        for a, b in ((0, 1), (1, 0))
    )
    return (first * rounds[0] + second * rounds[1]) / sum(rounds)


def missing_age(runs: Sequence[RunTotals]) -> float:
    """How much the mean age is too low because every client starts with the age 0.

    A client that is merged at the rate r has the age 1 / r in the long run. At the time t it lacks
    exp(-r t) / r of it if it is merged at random; if clients take turns it lacks less.
    """
    merged, spread = np.sum([run.merged for run in runs], axis=0), spread_of_merges(runs)
    time, rounds = total(runs, "time"), total(runs, "rounds")
    interval = inverse_participation(merged, rounds, spread) * (time / rounds)
    lasting = time / len(runs) / interval  # merges that are expected in a run
    share = -np.expm1(-lasting) / np.maximum(lasting, 1e-300)
    return float(min(spread, 1.0) * np.mean(interval * share))


def total(runs: Sequence[RunTotals], amount: str) -> float:
    """The sum of an amount over all runs."""
    return sum(run.amounts[amount] for run in runs)


def quantity_of(name: str, runs: Sequence[RunTotals]) -> float:
    """A quantity of :data:`RATIOS`, or ``messages``; infinite without updates."""
    over, under = MESSAGES if name == "messages" else RATIOS[name]
    below = total(runs, under)
    found = total(runs, over) / below if below else float("inf")
    return found + missing_age(runs) if name == "age" else found


def cost_of(goal: Prices | ToAccuracy, runs: Sequence[RunTotals], *, asynchronous: bool) -> float:
    """The goal's cost; infinite if no round succeeded.

    Args:
        goal: the goal.
        runs: the totals of the runs.
        asynchronous: whether the overhead is paid per job instead of per round.
    """
    if not total(runs, "updates"):
        return float("inf")
    if isinstance(goal, Prices):
        cost = quantity_of("age", runs)
        if goal.waste:
            cost += goal.waste * quantity_of("waste", runs)
        return cost + goal.broadcast * quantity_of("broadcasts", runs)
    ratio = NOISE_RATIO if goal.noise_ratio is None else goal.noise_ratio
    price = _price(goal, runs, asynchronous=asynchronous)
    return ((1 + ratio) * mean_inverse(runs) - 1) / ratio * price


def _price(goal: ToAccuracy, runs: Sequence[RunTotals], *, asynchronous: bool) -> float:
    """The cost of one round."""
    rounds, time, jobs = (total(runs, name) for name in ("rounds", "time", "jobs"))
    work, overhead = total(runs, "work"), goal.overhead or 0.0
    if goal.spend == "client-seconds":
        idle = 0.0 if asynchronous else IDLE * total(runs, "held")
        return (work + idle + overhead * jobs) / rounds
    if asynchronous:  # the jobs of the clients at work are longer by the overhead
        return time * (1 + overhead * jobs / max(work, 1e-300)) / rounds
    return time / rounds + overhead


@dataclass(frozen=True)
class Measured:
    """A number with its standard error, and a value per run.

    Attributes:
        value: the number for all runs together.
        by_run: values per run: their mean is ``value``, and they can be paired with those of other
            settings.
    """

    value: float
    by_run: Floats

    @property
    def estimate(self) -> Estimate:
        """The mean and its standard error."""
        return mean(self.by_run)


def jackknife(
    runs: Sequence[RunTotals], number: Callable[[Sequence[RunTotals]], float]
) -> Measured:
    """A number with a value per run, from the numbers without one run each."""
    whole, count = number(runs), len(runs)
    if count < 2 or not np.isfinite(whole):
        return Measured(whole, np.full(count, whole))
    without = np.array([number([*runs[:i], *runs[i + 1 :]]) for i in range(count)])
    if not np.isfinite(without).all():  # all updates were in one run
        return Measured(whole, np.full(count, np.inf))
    return Measured(whole, whole - (count - 1) * (without - without.mean()))
