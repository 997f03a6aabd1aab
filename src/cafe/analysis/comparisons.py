"""Policies compared: estimates side by side, differences seed by seed, and the best policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cafe.analysis import statistics
from cafe.analysis.run_costs import RATIOS
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
    """The mean difference of a quantity, or of the last accuracy or loss, seed by seed."""
    values, others = (
        each.final_values(what) if what in FINAL else each.values(what) for each in (group, first)
    )
    return statistics.paired(values, others)


def best_groups(groups: Sequence[RunGroup], quantity: str) -> list[RunGroup]:
    """The groups with the lowest mean, or the highest accuracy; empty if all are equal.

    Groups without a single update do not take part.
    """
    if quantity in FINAL:
        means = [float(np.mean(group.final_values(quantity))) for group in groups]
    else:
        means = [group.estimate(quantity).mean for group in groups]
    values = np.array(means) * (-1 if quantity == "accuracy" else 1)
    moved = np.array([any(h.updates for h in group.histories) for group in groups])
    usable = np.where(np.isfinite(values) & moved, values, np.inf)
    if not usable.min() < usable.max():
        return []
    return [groups[i] for i in np.flatnonzero(usable == usable.min()).tolist()]


def _figure_values(group: RunGroup) -> dict[str, Floats]:
    """Values of each figure whose mean is the figure: one per run, or per block of rounds."""
    found = {name: group.values(name) for name in RATIOS}
    found |= {name: group.final_values(name) for name in FINAL}
    return found | {"virtual_time": np.array([h.virtual_time for h in group.histories])}
