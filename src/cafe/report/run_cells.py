"""Tables about runs, as text: results, costs, differences, fates, theory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cafe.analysis.comparisons import best_groups, difference, have_same_seeds
from cafe.analysis.run_costs import RATIOS
from cafe.analysis.run_groups import RunGroup
from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells
from cafe.wording import (
    FATES,
    QUANTITIES,
    TRAFFIC,
    format_estimate,
    format_number,
    format_share,
    quantity_label,
)

PER = ("per update", "per used report", "per second")

# Three costs, each with three denominators, because the best policy may differ between them.
COSTS = (
    (
        "Waste, client-seconds: a discarded job counts until its round closed",
        ("waste", "waste_per_gradient", "waste_per_time"),
    ),
    (
        "Processing waste, client-seconds: a discarded job counts until it reported",
        ("processing_waste", "processing_waste_per_gradient", "processing_waste_per_time"),
    ),
    (
        "Client time, client-seconds, used or not",
        ("client_seconds", "client_seconds_per_gradient", "client_seconds_per_time"),
    ),
)


def format_mean(estimate: Estimate) -> str:
    """The mean with its standard error."""
    return format_estimate(estimate.mean, estimate.error)


def results(groups: Sequence[RunGroup]) -> Cells:
    """The main figures of each policy: rounds, success, accuracy, loss and age."""
    learned = [
        w for w in ("accuracy", "loss") if any(_any(group.final_values(w)) for group in groups)
    ]
    alike = len({len(group.runs) for group in groups}) == 1
    columns = ["", *([] if alike else ["runs"]), "rounds", "succeed", "broadcasts", *learned]
    rows = []
    for group in groups:
        succeed = group.estimate("success_probability")
        row = [group.label, *([] if alike else [f"{len(group.runs)}"]), _rounds(group)]
        row += [
            format_share(succeed.mean, succeed.error),
            format_mean(group.estimate("broadcasts")),
        ]
        for what in learned:
            found = group.final_estimate(what)
            text = (
                format_share(found.mean, found.error) if what == "accuracy" else format_mean(found)
            )
            row.append(text if found.mean == found.mean else "-")
        rows.append([*row, format_mean(group.estimate("age")), format_mean(group.worst_age)])
    title = "Results: broadcasts per update, ages in seconds"
    return Cells(title, [*columns, "mean age", "worst age"], rows)


def costs(groups: Sequence[RunGroup]) -> list[Cells]:
    """Each cost per update, per used report and per second.

    A star marks the lowest if all others are more than two standard errors away.
    """
    tables = []
    for title, names in COSTS:
        best = {name: {id(group) for group in best_groups(groups, name)} for name in names}
        rows = [
            [
                group.label,
                *(
                    format_mean(group.estimate(name)) + " *" * (id(group) in best[name])
                    for name in names
                ),
            ]
            for group in groups
        ]
        star = " (* the lowest by two standard errors)" if any(best.values()) else ""
        tables.append(Cells(f"{title}{star}", ["", *PER], rows))
    return tables


def traffic(groups: Sequence[RunGroup]) -> Cells | None:
    """Network traffic per update; None if the runs did not count it."""
    found = {name: [group.estimate(name) for group in groups] for name in TRAFFIC}
    some = [name for name, each in found.items() if any(e.mean > 0 for e in each)]
    if not some:
        return None
    rows = [
        [group.label, *(format_mean(found[name][i]) for name in some)]
        for i, group in enumerate(groups)
    ]
    labels = (TRAFFIC[name] for name in some)
    columns = ["", *(f"{label}, bytes" if "bytes" in unit else label for label, unit, _ in labels)]
    return Cells("Network traffic, per update", columns, rows)


def differences(groups: Sequence[RunGroup]) -> Cells | None:
    """Each policy minus the first, paired by seed; None if their seeds differ."""
    first, *others = groups
    if not others or not have_same_seeds(groups):
        return None
    names = ["waste", "client_seconds", "age"]
    learned = [w for w in ("accuracy", "loss") if np.isfinite(first.final_values(w)).all()]
    rows = []
    for group in others:
        row = [group.label, *(_signed(difference(group, first, name)) for name in names)]
        for what in learned:
            e = difference(group, first, what)
            points = Estimate(100 * e.mean, 100 * e.error, e.count)
            row.append(f"{_signed(points)} points" if what == "accuracy" else _signed(e))
        rows.append(row)
    columns = ["", "waste per update", "client-s per update", "mean age", *learned]
    return Cells(f"Difference to {first.label}, seed by seed", columns, rows)


def fates(groups: Sequence[RunGroup]) -> Cells:
    """The number and the share of jobs with each fate."""
    met = [fate for fate in FATES if any(group.fates[fate] for group in groups)]
    rows = []
    for group in groups:
        row = [f"{group.fates[f]:,} ({group.fate_shares[f]:.1%})" for f in met]
        rows.append([group.label, f"{group.jobs:,}", *row])
    columns = ["", "jobs", *(FATES[fate][0] for fate in met)]
    return Cells("Fates of the jobs", columns, rows)


def theory(group: RunGroup) -> Cells | None:
    """Measured values beside expected ones; None if theory expects nothing."""
    rows = []
    for name in (k for k in RATIOS if group.expected.get(k) and k in QUANTITIES):
        found, expected = group.estimate(name), group.expected[name]
        off, chance = found.off_by(expected), found.chance(expected)
        rows.append(
            [
                quantity_label(name),
                QUANTITIES[name][1],
                format_mean(found),
                format_number(expected),
                f"{off:+.1f}" if off == off else "-",
                f"{chance:.0%}" if chance == chance else "-",
            ]
        )
    columns = ["", "", "measured", "expected", "standard errors apart", "p-value"]
    title = f"Measured and expected: {group.label}"
    return Cells(title, columns, rows, words=frozenset({0, 1})) if rows else None


def runs(groups: Sequence[RunGroup], most: int = 200) -> Cells:
    """A row per run."""
    rows = []
    for group in groups:
        for run, history in zip(group.runs, group.histories, strict=True):
            accuracy = "-" if history.accuracy is None else format_share(history.accuracy)
            row = [group.label, f"{history.seed}", f"{history.rounds:,}", f"{history.updates:,}"]
            row += [format_number(history.virtual_time), format_number(history.waste_per_update)]
            rows.append([*row, accuracy, f"{run.provenance.get('version', '-')}"])
    note = f", the first {most} of {len(rows):,}" if len(rows) > most else ""
    columns = [
        "",
        "seed",
        "rounds",
        "updates",
        "time, s",
        "waste per update",
        "accuracy",
        "version",
    ]
    return Cells(f"All runs{note}", columns, rows[:most])


def _rounds(group: RunGroup) -> str:
    counts = sorted({history.rounds for history in group.histories})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def _any(values: Any) -> bool:
    return bool(np.isfinite(values).any())


def _signed(estimate: Estimate) -> str:
    return ("+" if estimate.mean > 0 else "") + format_mean(estimate)
