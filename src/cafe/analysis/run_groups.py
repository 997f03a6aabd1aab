"""Runs grouped by scenario and policy: runs that differ only in their seed are repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.analysis import run_costs, statistics
from cafe.analysis.expected_values import expected_values
from cafe.analysis.fairness import fairness
from cafe.analysis.policy_labels import parse_policy, unique_labels
from cafe.analysis.run_costs import RATIOS, WORK_SHARES, Spent, amounts_by_round
from cafe.analysis.run_records import (
    RunRecord,
    drop_duplicates,
    label_of,
    scenario_key,
    scenario_names,
)
from cafe.analysis.statistics import Estimate
from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.rounds import Fate, History


@dataclass(frozen=True, eq=False)
class RunGroup:
    """The runs of one policy in one scenario.

    Attributes:
        policy: the text that identifies the policy.
        label: its label in reports.
        runs: the runs, sorted by seed.
        scenario: the scenario's name; empty if all groups have the same scenario.
    """

    policy: str
    label: str
    runs: Sequence[RunRecord]
    scenario: str = ""

    @cached_property
    def histories(self) -> list[History]:
        """The history of each run."""
        return [run.history for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [history.seed for history in self.histories]

    @cached_property
    def _sums(self) -> dict[str, Floats]:
        """Each amount summed over each run, or over blocks of rounds if there is only one run."""
        each = [amounts_by_round(history) for history in self.histories]
        if len(each) == 1:
            return {name: statistics.blocks(column) for name, column in each[0].items()}
        return {name: np.array([one[name].sum() for one in each]) for name in each[0]}

    def values(self, quantity: str) -> Floats:
        """Values whose mean is the quantity: one per run, or per block if there is one run."""
        over, under = (RATIOS | WORK_SHARES).get(quantity, (quantity, "updates"))
        return statistics.ratio_values(self._sums[over], self._sums[under])

    def estimate(self, quantity: str) -> Estimate:
        """A quantity of RATIOS, WORK_SHARES or COUNTED, estimated from all runs."""
        return statistics.mean(self.values(quantity))

    def final_values(self, what: str) -> Floats:
        """The last ``accuracy`` or ``loss`` of each run; NaN for runs without one."""
        found = [getattr(history, what) for history in self.histories]
        return np.array([np.nan if value is None else value for value in found])

    def final_estimate(self, what: str) -> Estimate:
        """The mean of the runs' last ``accuracy`` or ``loss``."""
        return statistics.mean(self.final_values(what))

    @property
    def worst_age(self) -> Estimate:
        """The largest mean age of any client."""
        return statistics.mean([h.age_by_client.max() for h in self.histories if _has_clients(h)])

    @cached_property
    def fates(self) -> dict[str, int]:
        """The number of jobs with each fate, in all runs; ``open`` jobs have no fate yet."""
        sums = {f.name.lower(): sum(h.fates[f.name.lower()] for h in self.histories) for f in Fate}
        return sums | {"open": sum(h.open_jobs for h in self.histories)}

    @property
    def jobs(self) -> int:
        """The number of jobs in all runs."""
        return sum(self.fates.values())

    @property
    def fate_shares(self) -> dict[str, float]:
        """The share of jobs with each fate, from 0 to 1."""
        return {fate: count / max(self.jobs, 1) for fate, count in self.fates.items()}

    @property
    def ages(self) -> Floats:
        """The mean age of each client, averaged over runs; empty before the first checkpoint."""
        return _mean_by_client([h.age_by_client for h in self.histories if _has_clients(h)])

    @property
    def has_weights(self) -> bool:
        """Whether clients have weights, as they do in all runs but those of two levels."""
        known = filter(_has_clients, self.histories)
        return all(np.isfinite(history.weight_by_client).all() for history in known)

    @property
    def relative_weights(self) -> Floats:
        """Each client's weight per update divided by an equal share; empty if it is unknown."""
        known = [h for h in self.histories if np.isfinite(h.weight_by_client).all()]
        each = _mean_by_client([h.weight_by_client / max(h.updates, 1) for h in known])
        return each * len(each)

    def spent_until(self, accuracy: float) -> list[Spent]:
        """What each run had spent when it first reached an accuracy."""
        return [run_costs.spent_until(history, accuracy) for history in self.histories]

    def spent_estimate(self, accuracy: float, what: str) -> Estimate:
        """The mean of one attribute of :class:`Spent`; infinite if a run never got there."""
        return statistics.mean([getattr(spent, what) for spent in self.spent_until(accuracy)])

    @cached_property
    def _fairness(self) -> dict[str, Floats]:
        each = [fairness(history) for history in self.histories]
        return {name: np.array([one[name] for one in each]) for name in each[0]}

    def fairness_values(self, figure: str) -> Floats:
        """A figure of :func:`cafe.analysis.fairness.fairness` for each run."""
        return self._fairness[figure]

    def fairness_estimate(self, figure: str) -> Estimate:
        """The mean of a figure of :func:`cafe.analysis.fairness.fairness` over the runs."""
        return statistics.mean(self.fairness_values(figure))

    @property
    def expected(self) -> dict[str, float]:
        """What theory expects, by the names of :data:`RATIOS`; empty where it does not apply."""
        return self._expected[0]

    @property
    def why_not_expected(self) -> str:
        """Why nothing is expected although theory covers the policy; empty otherwise."""
        return self._expected[1]

    @cached_property
    def _expected(self) -> tuple[dict[str, float], str]:
        return expected_values(self)

    def deviation(self, quantity: str) -> tuple[float, float] | None:
        """The relative deviation from the expected value, and half its 95% interval."""
        expected = self.expected.get(quantity)
        if not expected or not np.isfinite(expected):
            return None
        found = self.estimate(quantity)
        if not np.isfinite(found.mean):
            return None
        return (found.mean - expected) / expected, found.interval() / expected

    @property
    def unfinished(self) -> int:
        """The number of runs that were cut short."""
        return sum(not getattr(run, "finished", True) for run in self.runs)

    @property
    def has_curves(self) -> bool:
        """Whether the model was evaluated in any run."""
        return any(h.curve is not None and len(h.curve) for h in self.histories)


def group_runs(results: Sequence[RunRecord]) -> list[RunGroup]:
    """Group runs by scenario and policy, in order of first appearance; copies count once."""
    if not results:
        raise InputError("At least one result is required. Got none.")
    found: dict[str | None, dict[tuple[str, str], list[RunRecord]]] = {}
    for result in drop_duplicates(results):
        policy, label = result.history.policy, label_of(result)
        if label == parse_policy(policy)[0]:
            label = ""  # the recipe's name alone does not tell policies apart
        policies = found.setdefault(scenario_key(result), {})
        policies.setdefault((policy, label), []).append(result)
    labels = unique_labels([pair for policies in found.values() for pair in policies])
    firsts = [next(iter(policies.values()))[0] for policies in found.values()]
    scenarios = scenario_names(firsts) if len(firsts) > 1 else [""]
    return [
        RunGroup(
            policy=pair[0],
            label=f"{scenario}: {labels[pair]}" if scenario else labels[pair],
            runs=sorted(runs, key=lambda run: run.history.seed),
            scenario=scenario,
        )
        for scenario, policies in zip(scenarios, found.values(), strict=True)
        for pair, runs in policies.items()
    ]


def by_scenario(groups: Sequence[RunGroup]) -> list[list[RunGroup]]:
    """The groups of each scenario."""
    found: dict[str, list[RunGroup]] = {}
    for group in groups:
        found.setdefault(group.scenario, []).append(group)
    return [*found.values()]


def _mean_by_client(rows: Sequence[Floats]) -> Floats:
    """The mean of the rows, which are sorted first if their numbers of clients differ."""
    rows = [row.astype(float) for row in rows]
    if len({len(row) for row in rows}) <= 1:
        return np.asarray(np.mean(rows, axis=0)) if rows else np.empty(0)
    levels = np.linspace(0, 1, min(len(row) for row in rows))
    return np.asarray(np.mean([np.quantile(row, levels) for row in rows], axis=0))


def _has_clients(history: History) -> bool:
    """Whether values per client are known: not before a run's first checkpoint."""
    return bool(np.isfinite(history.age_by_client).all())
