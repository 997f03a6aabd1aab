"""Policies compared: estimates side by side, differences seed by seed, and the best policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cafe.analysis import statistics
from cafe.analysis.fairness import FAIRNESS
from cafe.analysis.run_costs import RATIOS, WORK_SHARES
from cafe.analysis.run_groups import RunGroup
from cafe.analysis.statistics import Estimate
from cafe.latency.base import Floats

FINAL = ("accuracy", "loss")


class Figures(NamedTuple):
    """Estimates for one policy, and their differences to the first policy if seeds are equal."""

    estimates: dict[str, Estimate]
    differences: dict[str, Estimate] | None


def compare_figures(groups: Sequence[RunGroup]) -> list[Figures]:
    """The figures of each group; differences only if several runs can be paired by seed."""
    found = [_figure_values(group) for group in groups]
    paired = have_same_seeds(groups)
    return [
        Figures(
            {name: statistics.mean(each) for name, each in values.items()},
            {name: statistics.paired(each, found[0][name]) for name, each in values.items()}
            if paired and group is not groups[0]
            else None,
        )
        for group, values in zip(groups, found, strict=True)
    ]


def have_same_seeds(groups: Sequence[RunGroup]) -> bool:
    """Whether all groups have the same seeds, and at least two: one gives no standard error."""
    seeds = groups[0].seeds
    return len(set(seeds)) > 1 and all(group.seeds == seeds for group in groups)


def difference(group: RunGroup, first: RunGroup, what: str) -> Estimate:
    """The mean difference of a quantity, of fairness, or of the last accuracy or loss, by seed."""
    return statistics.paired(_run_values(group, what), _run_values(first, what))


def best_groups(groups: Sequence[RunGroup], quantity: str) -> list[RunGroup]:
    """The groups with the lowest mean, or the highest accuracy; empty if none is clearly the best.

    Several groups are the best if their values are equal. Every other group must be more than two
    standard errors away: of the paired difference if all have the same seeds, otherwise of the
    difference of means. Groups without a single update do not take part.
    """
    sign = -1.0 if quantity == "accuracy" else 1.0
    values = [sign * _run_values(group, quantity) for group in groups]
    means = [_mean(each, group) for each, group in zip(values, groups, strict=True)]
    least = int(np.argmin(means))
    apart = statistics.paired if have_same_seeds(groups) else statistics.unpaired
    equal = [bool(np.array_equal(each, values[least])) for each in values]
    clear = all(
        same or mean == np.inf or _is_clear(apart(each, values[least]))
        for same, mean, each in zip(equal, means, values, strict=True)
    )
    if not clear or all(equal) or not np.isfinite(means[least]):
        return []
    return [group for group, same in zip(groups, equal, strict=True) if same]


class Lead(NamedTuple):
    """How much the best groups are better at something than the next best one.

    Attributes:
        best: the best groups: several only if their values are equal.
        second: the next best group.
        difference: the mean of a best group minus that of ``second``.
        share: the difference as a share of the mean of ``second``, without its sign.
    """

    best: tuple[RunGroup, ...]
    second: RunGroup
    difference: Estimate
    share: float


def find_lead(groups: Sequence[RunGroup], quantity: str) -> Lead | None:
    """The lead of the best groups; None if none is clearly the best, or no other takes part."""
    best = best_groups(groups, quantity)
    sign = -1.0 if quantity == "accuracy" else 1.0
    others = {
        sign * statistics.mean(_run_values(group, quantity)).mean: group
        for group in groups
        if group not in best and np.isfinite(_mean(_run_values(group, quantity), group))
    }
    if not best or not others:
        return None
    least = min(others)
    second = others[least]
    apart = statistics.paired if have_same_seeds(groups) else statistics.unpaired
    found = apart(_run_values(best[0], quantity), _run_values(second, quantity))
    return Lead((*best,), second, found, abs(found.mean / least) if least else float("inf"))


def _run_values(group: RunGroup, what: str) -> Floats:
    """Values whose mean is a quantity, a figure of fairness, or the last accuracy or loss."""
    if what in FAIRNESS:
        return group.fairness_values(what)
    return group.final_values(what) if what in FINAL else group.values(what)


def _mean(values: Floats, group: RunGroup) -> float:
    moved = any(history.updates for history in group.histories)
    found = statistics.mean(values).mean if moved else float("nan")
    return found if np.isfinite(found) else float("inf")


def _is_clear(difference: Estimate) -> bool:
    return difference.mean > 0 and difference.is_apart(0.0)


def _figure_values(group: RunGroup) -> dict[str, Floats]:
    """Values of each figure whose mean is the figure: one per run, or per block of rounds."""
    found = {name: _run_values(group, name) for name in (*RATIOS, *FINAL, *WORK_SHARES, *FAIRNESS)}
    return found | {"virtual_time": np.array([h.virtual_time for h in group.histories])}
