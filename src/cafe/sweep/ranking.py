"""Settings of a sweep from the best to the worst, with means and standard errors over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cafe.analysis import statistics
from cafe.analysis.statistics import Estimate
from cafe.sweep.measures import SweepMeasure
from cafe.sweep.sweep_cell import CellResult


@dataclass(frozen=True)
class RankedSetting:
    """One set of values with one policy, and its measure over all seeds.

    Attributes:
        point: the number of its point.
        values: the values by dotted scenario key.
        label: the label of the policy.
        estimate: the mean of the measure over the seeds that did not fail.
        failed: the number of seeds whose run failed.
        reason: why the first of them failed; empty if none did.
    """

    point: int
    values: Mapping[str, Any]
    label: str
    estimate: Estimate
    failed: int
    reason: str


def rank_settings(results: Sequence[CellResult], measure: SweepMeasure) -> list[RankedSetting]:
    """All settings, the best first; those with failed runs are last.

    Equally good settings are in the order of the sweep.
    """
    groups: dict[tuple[int, str], list[CellResult]] = {}
    for result in results:
        groups.setdefault((result.cell.point, result.cell.label), []).append(result)
    found = [_setting(group, measure.name) for group in groups.values()]
    return sorted(found, key=lambda one: (one.failed > 0, measure.rank(one.estimate.mean)))


def _setting(group: Sequence[CellResult], name: str) -> RankedSetting:
    cell, reasons = group[0].cell, [result.reason for result in group if result.reason]
    values = [result.figures[name] for result in group if not result.reason]
    return RankedSetting(
        point=cell.point,
        values=cell.values,
        label=cell.label,
        estimate=statistics.mean(values),
        failed=len(reasons),
        reason=reasons[0] if reasons else "",
    )
