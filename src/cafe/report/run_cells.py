"""What tables of runs and of policies hold, as text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cafe.analysis import statistics
from cafe.analysis.repeated_runs import RATIOS, Repeats, common_accuracy
from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells
from cafe.wording import (
    FATES,
    QUANTITIES,
    TRAFFIC,
    give_or_take,
    name_of,
    number,
    share,
)

PER = ("per update", "per used report", "per second")

# Three costs, each in three denominators: which policy is best changes between them.
COSTS = (
    (
        "Waste, client-seconds: a discarded job is charged until its round closed",
        ("waste", "waste_per_gradient", "waste_per_time"),
    ),
    (
        "Processing waste, client-seconds: a discarded job is charged until it reported",
        ("processing_waste", "processing_waste_per_gradient", "processing_waste_per_time"),
    ),
    (
        "Client time, client-seconds, used or not",
        ("client_seconds", "client_seconds_per_gradient", "client_seconds_per_time"),
    ),
)


def shown(estimate: Estimate) -> str:
    """An estimate as text."""
    return give_or_take(estimate.mean, estimate.error)


def results(groups: Sequence[Repeats]) -> Cells:
    """How each policy went."""
    learned = [w for w in ("accuracy", "loss") if any(_any(group.final(w)) for group in groups)]
    alike = len({len(group.runs) for group in groups}) == 1
    columns = ["", *([] if alike else ["runs"]), "rounds", "succeed", "broadcasts", *learned]
    rows = []
    for group in groups:
        succeed = group.estimate("success_probability")
        row = [group.label, *([] if alike else [f"{len(group.runs)}"]), _rounds(group)]
        row += [share(succeed.mean, succeed.error), shown(group.estimate("broadcasts"))]
        for what in learned:
            found = statistics.mean(group.final(what))
            text = share(found.mean, found.error) if what == "accuracy" else shown(found)
            row.append(text if found.mean == found.mean else "-")
        rows.append([*row, shown(group.estimate("age")), shown(group.worst_age)])
    title = "How it went: broadcasts per update, ages in seconds"
    return Cells(title, [*columns, "mean age", "worst age"], rows)


def costs(groups: Sequence[Repeats]) -> list[Cells]:
    """Every cost per update, per used report and per unit of time; a star marks the least."""
    tables = []
    for title, names in COSTS:
        found = [[group.estimate(name) for name in names] for group in groups]
        means = np.array([[e.mean for e in row] for row in found])
        rows = [
            [
                group.label,
                *(shown(e) + " *" * _least(means[:, i], e.mean) for i, e in enumerate(row)),
            ]
            for group, row in zip(groups, found, strict=True)
        ]
        star = " (* the least)" if len(groups) > 1 else ""
        tables.append(Cells(f"{title}{star}", ["", *PER], rows))
    return tables


def traffic(groups: Sequence[Repeats]) -> Cells | None:
    """What went over the network per update; None for runs in which it was not counted."""
    found = {name: [group.estimate(name) for group in groups] for name in TRAFFIC}
    some = [name for name, each in found.items() if any(e.mean > 0 for e in each)]
    if not some:
        return None
    rows = [
        [group.label, *(shown(found[name][i]) for name in some)] for i, group in enumerate(groups)
    ]
    labels = (TRAFFIC[name] for name in some)
    columns = ["", *(f"{label}, bytes" if "bytes" in unit else label for label, unit, _ in labels)]
    return Cells("What went over the network, per update", columns, rows)


def until(groups: Sequence[Repeats], accuracy: float | None = None) -> Cells | None:
    """What an accuracy took: the one asked for, or the highest that every run reached."""
    goal = common_accuracy(groups) if accuracy is None else accuracy
    if goal is None:
        return None
    names = ["time", "rounds", "work", "processing_waste", "waste"]
    columns = ["", "time, s", "rounds", "client-seconds", "of them wasted", "waste, as charged"]
    reached = [group.until(goal) for group in groups]
    if any(one.bytes for spent in reached for one in spent):  # older runs did not count them
        names, columns = [*names, "bytes"], [*columns, "bytes, down and up"]
    rows = []
    for group, spent in zip(groups, reached, strict=True):
        found = [statistics.mean([getattr(one, name) for one in spent]) for name in names]
        text = [shown(e) if np.isfinite(e.mean) else "not reached" for e in found]
        rows.append([group.label, *text])
    return Cells(f"What it took to reach an accuracy of {share(goal)}", columns, rows)


def differences(groups: Sequence[Repeats]) -> Cells | None:
    """Every policy against the first, seed by seed; None where their seeds are not the same."""
    first, *others = groups
    seeds = first.seeds
    if not others or len(set(seeds)) < 2 or any(group.seeds != seeds for group in others):
        return None
    names = ["waste", "client_seconds", "age"]
    learned = [w for w in ("accuracy", "loss") if np.isfinite(first.final(w)).all()]
    rows = []
    for group in others:
        found = [statistics.paired(group.values(k), first.values(k)) for k in names]
        row = [group.label, *(_signed(e) for e in found)]
        for what in learned:
            e = statistics.paired(group.final(what), first.final(what))
            points = Estimate(100 * e.mean, 100 * e.error, e.count)
            row.append(f"{_signed(points)} points" if what == "accuracy" else _signed(e))
        rows.append(row)
    columns = ["", "waste per update", "client-s per update", "mean age", *learned]
    return Cells(f"Difference to {first.label}, seed by seed", columns, rows)


def fates(groups: Sequence[Repeats]) -> Cells:
    """What became of the jobs, in numbers and shares."""
    met = [fate for fate in FATES if any(group.fates[fate] for group in groups)]
    rows = []
    for group in groups:
        jobs = sum(group.fates.values())
        row = [f"{group.fates[f]:,} ({group.fates[f] / max(jobs, 1):.1%})" for f in met]
        rows.append([group.label, f"{jobs:,}", *row])
    columns = ["", "jobs", *(FATES[fate][0] for fate in met)]
    return Cells("What became of the jobs", columns, rows)


def theory(group: Repeats) -> Cells | None:
    """Measured beside expected; None where nothing is expected."""
    rows = []
    for name in (k for k in RATIOS if group.expected.get(k) and k in QUANTITIES):
        found, expected = group.estimate(name), group.expected[name]
        off, chance = found.off_by(expected), found.chance(expected)
        rows.append(
            [
                name_of(name),
                QUANTITIES[name][1],
                shown(found),
                number(expected),
                f"{off:+.1f}" if off == off else "-",
                f"{chance:.0%}" if chance == chance else "-",
            ]
        )
    columns = ["", "", "measured", "expected", "off by, errors", "chance does so"]
    title = f"Theory against the run: {group.label}"
    return Cells(title, columns, rows, words=frozenset({0, 1})) if rows else None


def runs(groups: Sequence[Repeats], most: int = 200) -> Cells:
    """Every run by itself."""
    rows = []
    for group in groups:
        for run, history in zip(group.runs, group.histories, strict=True):
            accuracy = "-" if history.accuracy is None else share(history.accuracy)
            row = [group.label, f"{history.seed}", f"{history.rounds:,}", f"{history.updates:,}"]
            row += [number(history.virtual_time), number(history.waste_per_update)]
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
    return Cells(f"Every run{note}", columns, rows[:most])


def policies(recipes: Mapping[str, Callable[..., Any]]) -> list[Cells]:
    """Every recipe: what it does and needs, then its parameters."""
    heads, tables = [], []
    for name, recipe in recipes.items():
        first, meanings = documented(recipe)
        heads.append([name, first, _needs(recipe)])
        rows = [
            [key, "needed" if p.default is p.empty else f"{p.default}", meanings.get(key, "")]
            for key, p in inspect.signature(recipe).parameters.items()
        ]
        tables.append(Cells(name, ["parameter", "default", "meaning"], rows, frozenset({0, 1, 2})))
    columns = ["policy", "what it does", "needs"]
    return [Cells("Policies", columns, heads, frozenset({0, 1, 2})), *tables]


def documented(recipe: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring's first line, and what its ``Args`` section says of each parameter."""
    text = inspect.getdoc(recipe) or ""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", text, flags=re.MULTILINE)
    entries: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n" + section[1]).splitlines() if section else ():
        starts = re.match(r"(\w+):\s*(.*)", line)
        if starts:
            name, entries[starts[1]] = starts[1], starts[2]
        elif name:
            entries[name] += f" {line.strip()}"
    return text.partition("\n")[0], {k: v.strip() for k, v in entries.items()}


def _needs(recipe: Callable[..., Any]) -> str:
    """What a recipe's policy needs to know, asked of one that is told as little as possible."""
    guesses = {"int": 1, "float": 1.0}
    told = {
        key: guesses.get(f"{p.annotation}".partition(" ")[0], 1)
        for key, p in inspect.signature(recipe).parameters.items()
        if p.default is p.empty
    }
    try:
        return ", ".join(sorted(recipe(**told).needs)) or "-"
    except Exception:  # a recipe that is choosier than that is still worth its row
        return "?"


def _rounds(group: Repeats) -> str:
    counts = sorted({history.rounds for history in group.histories})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def _any(values: Any) -> bool:
    return bool(np.isfinite(values).any())


def _least(column: Any, value: float) -> bool:
    return bool(len(column) > 1 and np.isfinite(value) and value == column.min() < column.max())


def _signed(estimate: Estimate) -> str:
    return ("+" if estimate.mean > 0 else "") + shown(estimate)
