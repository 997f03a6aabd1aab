"""The parts of the study that run on their own: each makes one row of the results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fleets import Fleet, named
from rules import GOALS
from trials import Point, Rules, Settings, Spent, Trial, Tuned, until_target, until_time

from cafe.planner import pooled_quantile
from cafe.task_constants import GradientStatistics, measure_at

CHOOSE = (1000, 1001, 1002, 1003)  # seeds with which settings and learning rates are chosen
JUDGE = tuple(range(8))  # seeds with which the chosen ones are judged
FIRST = (0.1, 0.35, 0.7, 0.97)  # deadlines of the first runs, as quantiles of all reports
LONG = 150  # length of the first runs, in median response times and overheads
LOSING = 2.0  # a run that spends this many times as much as with another rate is stopped
GRID_CAP, CAP = 4.0, 10.0  # and one that spends this many times as much as the best known


@dataclass(frozen=True)
class Cell:
    """What is run.

    Attributes:
        fleet: the federation's name.
        kind: "target", "grid", "rule" or "judge".
        rules: the quorum, the deadline and more; None for the target.
        rate: the learning rate, for a judged cell.
        target: the accuracy to reach.
        most: runs end when they exceed both this time and these client-seconds.
        quick: whether the cell is one of the quick study.
    """

    fleet: str
    kind: str
    rules: Settings | None = None
    rate: float | None = None
    target: float = 0.0
    most: tuple[float, float] = field(default=(math.inf, math.inf))
    quick: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the cell in a study."""
        rules = None if self.rules is None else tuple(self.rules.key())
        return (self.fleet, self.kind, rules, self.rate)


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """The key of the cell that a row comes from."""
    rules = row.get("rules")
    own = tuple(rules) if isinstance(rules, list) else None
    return (row["fleet"], row["kind"], own, row.get("rate"))


def run(cell: Cell) -> dict[str, Any]:
    """Run the cell, and return its row."""
    fleet, row = named(cell.fleet), {"fleet": cell.fleet, "kind": cell.kind}
    if cell.rules is not None:
        row["rules"] = cell.rules.key()
    if cell.kind == "target":
        row |= _first_runs(fleet, CHOOSE[0], LONG / 8 if cell.quick else LONG)
    elif cell.kind == "judge":
        assert cell.rules is not None
        row |= _judged(fleet, cell)
    else:
        row |= _tried(fleet, cell)
    return row


def _seeds(cell: Cell, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The seeds of a cell; the controller plans in every run, which takes time."""
    if isinstance(cell.rules, Tuned):
        return seeds[: len(seeds) // 4 if seeds == CHOOSE else len(seeds) // 2]
    return seeds[:2] if cell.quick else seeds


def _tried(fleet: Fleet, cell: Cell) -> dict[str, Any]:
    """The best learning rate for each goal, and its cost: the geometric mean over seeds."""
    assert cell.rules is not None
    least = {seed: [math.inf, math.inf] for seed in _seeds(cell, CHOOSE)}
    found: dict[float, list[Spent]] = {}
    for rate in fleet.rates[: 2 if cell.quick else None]:
        found[rate] = []
        for seed, (time_, work) in least.items():
            most = (min(cell.most[0], LOSING * time_), min(cell.most[1], LOSING * work))
            spent = until_target(fleet, cell.rules.policy(fleet), rate, seed, cell.target, most)
            found[rate].append(spent)
            if spent.reached:
                least[seed] = [min(time_, spent.time), min(work, spent.work)]
    best = []
    for goal in GOALS:
        cost = {rate: mean_cost(goal, runs) for rate, runs in found.items()}
        rate = min(cost, key=lambda r: cost[r])
        best.append([rate, rounded(cost[rate])])
    runs = [spent for each in found.values() for spent in each]
    return {
        "best": best,
        "burnt": [rounded(sum(s.work for s in runs)), sum(s.rounds for s in runs)],
    }


def mean_cost(goal: str, runs: list[Spent]) -> float:
    """The geometric mean of what the runs spent; infinite if one missed the target."""
    costs = [spent.cost(goal) for spent in runs]
    return math.exp(float(np.mean(np.log(costs)))) if all(map(math.isfinite, costs)) else math.inf


def _judged(fleet: Fleet, cell: Cell) -> dict[str, Any]:
    """What runs with other seeds spend; None for one that does not reach the target."""
    assert cell.rules is not None
    assert cell.rate is not None
    runs = [
        until_target(fleet, cell.rules.policy(fleet), cell.rate, seed, cell.target, cell.most)
        for seed in _seeds(cell, JUDGE)
    ]
    return {
        "rate": cell.rate,
        "time": [rounded(spent.cost("time")) for spent in runs],
        "work": [rounded(spent.cost("client-seconds")) for spent in runs],
        "rounds": rounded(float(np.mean([spent.rounds for spent in runs]))),
    }


def _first_runs(fleet: Fleet, seed: int, length: float) -> dict[str, Any]:
    """The target, what it costs at most, and the constants of the task on the way to it."""
    steady, best = fleet.federation.steady, 0.0
    trials: list[tuple[Rules, float, Trial]] = []
    for share in FIRST:
        rules = Rules(1, pooled_quantile(steady, share))
        for rate in fleet.rates:
            until = length * (fleet.median + fleet.seconds)
            trial = until_time(fleet, rules.policy(fleet), rate, seed, until)
            trials.append((rules, rate, trial))
            best = max(best, float(np.mean([p.accuracy for p in trial.points[-3:]])))
    target = fleet.share * best
    hits = [(hit, rules, rate) for rules, rate, trial in trials if (hit := _hit(trial, target))]
    quickest, rules, rate = min(hits, key=lambda found: found[0].time)
    ratio, critical = _constants(fleet, rules, rate, seed, target)
    return {
        "target": rounded(target),
        "time": rounded(quickest.time),
        "work": rounded(min(hit.work for hit, _, _ in hits)),
        "ratio": ratio,
        "critical": critical,
    }


def _hit(trial: Trial, target: float) -> Point | None:
    """The first of two evaluations in a row that reach the target."""
    pairs = zip(trial.points, trial.points[1:], strict=False)
    return next((a for a, b in pairs if min(a.accuracy, b.accuracy) >= target), None)


def _constants(
    fleet: Fleet, rules: Rules, rate: float, seed: int, target: float
) -> tuple[dict[str, float], dict[str, float]]:
    """The noise ratio and the critical number of reports, at the start and on the way."""
    trial = Trial(fleet, rules.policy(fleet), rate, seed)
    task = fleet.task(seed, rate)
    first = task.learner.save(task.learner.start(np.random.default_rng(0)))
    seen = [measure_at(task, first)]
    while trial.reached(target) is None and not trial.ended:
        trial.go_on()
        if len(trial.points) % 4 == 0:
            seen.append(measure_at(task, trial.run.history().model, probes=16))
    ratios = [found.mean_noise / fleet.steps / found.dissimilarity for found in seen]
    critical = [critical_reports(found, fleet.steps) for found in seen]
    middle = float(np.exp(np.mean(np.log(critical))))
    return (
        {"start": rounded(ratios[0]), "end": rounded(ratios[-1])},
        {"start": rounded(critical[0]), "mean": rounded(middle), "end": rounded(critical[-1])},
    )


def critical_reports(found: GradientStatistics, steps: int) -> float:
    """The number of reports whose mean is off by as much as the gradient is long."""
    return (found.mean_noise / steps + found.dissimilarity) / found.steepness


def rounded(value: float) -> float | None:
    """A number with four digits; None if it is infinite."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
