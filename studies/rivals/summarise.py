"""Write the page and the pictures of the study from its rows.

    python studies/rivals/summarise.py

reads ``results.jsonl`` next to this file and writes ``README.md`` and a picture per task.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import settings
import spaces

from cafe.analysis.statistics import Estimate, mean, paired
from cafe.policies import recipes, scheme_of
from cafe.report.plotting import COLOURS, MARKERS, figure, save, tidy

HERE = Path(__file__).resolve().parent
FINDINGS = HERE / "findings.md"  # what the tables show, in sentences
Row = dict[str, Any]

# What the page compares: name in the rows, heading, unit, and the factor to this unit.
COSTS = {
    "time": ("time", "min", 1 / 60),
    "work": ("client time", "client-h", 1 / 3600),
    "bytes": ("traffic", "MB", 1e-6),
}
PAPER = ("mcu", "awu", "agu")
KINDS = ("synchronous", "semi-asynchronous", "asynchronous", "hierarchical")


@dataclass(frozen=True)
class Entry:
    """The final runs of a policy on a fleet and a task.

    Attributes:
        policy: name of the recipe.
        rows: a row per seed, in the order of the seeds.
    """

    policy: str
    rows: Sequence[Row]

    @property
    def reached(self) -> int:
        """The number of seeds with which the target was reached."""
        return sum(row["to_target"]["time"] is not None for row in self.rows)

    @property
    def always(self) -> bool:
        """Whether the target was reached with every seed."""
        return self.reached == len(self.rows)

    @cached_property
    def kind(self) -> str:
        """The kind of the scheme's rounds."""
        scheme = scheme_of(recipes()[self.policy])
        return "" if scheme is None else scheme.kind

    def cost(self, what: str) -> Estimate:
        """A cost of reaching the target; over the seeds with which it was reached."""
        values = [row["to_target"][what] for row in self.rows]
        return mean([value * COSTS[what][2] for value in values if value is not None])

    def figure(self, what: str) -> Estimate:
        """A figure of whole runs."""
        return mean([row[what] for row in self.rows])

    def fairness(self, what: str) -> Estimate:
        """A figure of fairness, over the seeds in which it is known."""
        values = [row["fairness"][what] for row in self.rows]
        return mean([value for value in values if value is not None])

    @property
    def wasted(self) -> float:
        """The share of the client time that was wasted, each job up to its own report."""
        spent = sum(row["client_seconds"] for row in self.rows)
        return sum(row["processing_waste"] for row in self.rows) / spent if spent else 0.0

    def factor(self, other: Entry, what: str) -> Estimate:
        """The logarithm of this policy's cost relative to another's, seed by seed."""
        logs = [np.log([row["to_target"][what] for row in e.rows]) for e in (self, other)]
        return paired(*logs)


def entries(rows: Sequence[Row], task: str, fleet: str) -> list[Entry]:
    """The policies on a fleet and a task, by time to the target."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if (row["task"], row["fleet"], row["phase"]) == (task, fleet, "final"):
            found.setdefault(row["policy"], []).append(row)
    every = [
        Entry(policy, sorted(some, key=lambda row: int(row["number"])))
        for policy, some in found.items()
        if not any("error" in row for row in some)
    ]
    return order(every, "time")


def tasks(rows: Sequence[Row], size: settings.Size) -> list[str]:
    """The tasks whose runs are complete on every fleet."""
    every = {(fleet, policy) for fleet in settings.FLEETS for policy in spaces.SPACES}
    done = {}
    for row in rows:
        if row["phase"] == "final" or "error" in row:
            done.setdefault(row["task"], set()).add((row["fleet"], row["policy"]))
    return [task for task in size.targets if done.get(task, set()) >= every]


def order(some: Sequence[Entry], what: str) -> list[Entry]:
    """Policies by a cost: those that always reach the target first, then by accuracy."""

    def key(entry: Entry) -> tuple[float, float]:
        if entry.always:
            return (0, entry.cost(what).mean)
        return (1 + len(entry.rows) - entry.reached, -entry.figure("accuracy").mean)

    return sorted(some, key=key)


def leaders(some: Sequence[Entry], what: str) -> list[Entry]:
    """The best policy, and those whose paired difference to it is within two standard errors."""
    ranked = [entry for entry in order(some, what) if entry.always]
    return [e for e in ranked if e is ranked[0] or not e.factor(ranked[0], what).is_apart(0.0)]


def page(rows: Sequence[Row], *, quick: bool = False) -> str:
    """The page as Markdown."""
    size = settings.QUICK if quick else settings.FULL
    parts = [
        "# All policies compared\n",
        _introduction(size),
        *_missing(rows, size),
        *([] if quick else [FINDINGS.read_text(encoding="utf-8")]),
        "## Who wins\n",
        "The policies that reach the target with the least of each cost with every seed. Policies "
        "in one cell do not\ndiffer from the first by more than two standard errors of the paired "
        "difference.\n",
        _winners(rows, size),
        "## The schemes of the paper\n",
        "The rank among all policies, and the cost of reaching the target as a multiple of the "
        "best policy's.\n",
        _of_the_paper(rows, size),
    ]
    for task in tasks(rows, size):
        parts.append(f"## {task.capitalize()}\n")
        parts.append(f"![Time and client time to the target: {task}]({task}.svg)\n")
        for fleet in settings.FLEETS:
            parts += [f"### {task.capitalize()}, {fleet}\n", _table_of(rows, task, fleet)]
    parts += ["## Settings\n", "What tuning chose; the rest keeps its default.\n", _chosen(rows)]
    refused = _refused(rows)
    if refused:
        parts += [
            "## Tries that cannot work\n",
            "One error of each policy on each fleet; its other tries count.\n",
            refused,
        ]
    return "\n".join(parts)


def _introduction(size: settings.Size) -> str:
    targets = ", ".join(f"{100 * value:.0f} % ({task})" for task, value in size.targets.items())
    return (
        f"{size.clients} clients learn {size.dataset}; a report is {settings.STEPS} gradient steps "
        f"of {settings.BATCH} examples unless the scheme chooses its steps.\nThe target is an "
        f"accuracy of {targets}. A run lasts {size.horizon:g} median response times.\n\n"
        "- **exponential**: equal clients, 2 s of training and an exponential time with a mean of "
        "8 s; each client holds three classes.\n"
        "- **phones**: measured phones on measured Wi-Fi; each client holds three classes.\n"
        f"- **by speed**: the same phones; {100 * settings.SORTED:.0f} % of the examples are "
        "sorted by class and dealt to clients from fast to slow, so slow\n  clients hold classes "
        "that fast ones hardly have.\n"
        f"- **day and night**: the phones, each present for 60 % of every day of {settings.DAY} "
        "median response times.\n\n"
        f"Every policy has the same budget: {size.configurations} settings drawn at random, each "
        "with a learning rate, are run with one seed, and the\nsetting that reaches the target "
        f"first is run with {size.seeds} other seeds. Later tasks try the {size.tuned_again} best "
        "settings of the first one.\nTuning is for time; the other costs are those of the same "
        "runs. ± is a standard error over seeds. `study.py` makes the rows,\nand `summarise.py` "
        "writes this page.\n"
    )


def _missing(rows: Sequence[Row], size: settings.Size) -> list[str]:
    """A sentence about tasks that have not been run completely."""
    missing = [task for task in size.targets if task not in tasks(rows, size)]
    return [f"Not complete yet: {', '.join(missing)}.\n"] if missing else []


def _winners(rows: Sequence[Row], size: settings.Size) -> str:
    lines = []
    for task in tasks(rows, size):
        for fleet in settings.FLEETS:
            some = entries(rows, task, fleet)
            cells = [", ".join(f"`{e.policy}`" for e in leaders(some, what)) for what in COSTS]
            most = sorted(some, key=lambda e: -e.figure("accuracy").mean)[:1]
            last = [f"`{e.policy}` {100 * e.figure('accuracy').mean:.1f} %" for e in most]
            lines.append([task, fleet, *(cell or "-" for cell in cells), *(last or ["-"])])
    heads = [f"least {name}" for name, _, _ in COSTS.values()]
    return _table(["task", "fleet", *heads, "highest final accuracy"], lines)


def _of_the_paper(rows: Sequence[Row], size: settings.Size) -> str:
    lines = []
    for task in tasks(rows, size):
        for fleet in settings.FLEETS:
            some = entries(rows, task, fleet)
            for policy in PAPER:
                mine = next((e for e in some if e.policy == policy), None)
                if mine is not None:
                    cells = [_rank(mine, some, what) for what in COSTS]
                    lines.append([task, fleet, f"`{policy}`", *cells])
    return _table(["task", "fleet", "policy", *(name for name, _, _ in COSTS.values())], lines)


def _rank(mine: Entry, some: Sequence[Entry], what: str) -> str:
    if not mine.always:
        return f"target reached {mine.reached} of {len(mine.rows)} times"
    ranked = order(some, what)
    times = mine.cost(what).mean / ranked[0].cost(what).mean
    return f"{ranked.index(mine) + 1} of {len(ranked)}, {times:.1f} times"


def _table_of(rows: Sequence[Row], task: str, fleet: str) -> str:
    lines = []
    for entry in entries(rows, task, fleet):
        costs = [_show(entry, what) for what in COSTS]
        accuracy = entry.figure("accuracy")
        lines.append(
            [
                f"`{entry.policy}`",
                entry.kind,
                *costs,
                f"{100 * accuracy.mean:.1f} ± {100 * accuracy.error:.1f}",
                f"{100 * entry.wasted:.0f} %",
                f"{entry.figure('age').mean / 60:.1f}",
                f"{entry.fairness('oldest_tenth_age').mean / 60:.1f}",
                _percent(entry.fairness("worst_tenth_accuracy").mean),
            ]
        )
    heads = [f"{name} to target, {unit}" for name, unit, _ in COSTS.values()]
    last = ["final accuracy, %", "wasted", "mean age, min", "oldest tenth, min"]
    last.append("accuracy for the worst tenth")
    return _table(["policy", "kind", *heads, *last], lines)


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _show(entry: Entry, what: str) -> str:
    if not entry.reached:
        return "not reached"
    found = entry.cost(what)
    error = float(f"{found.error:.1g}")  # 10, and not 1e+01
    text = f"{found.mean:.3g} ± {error:g}" if entry.reached > 1 else f"{found.mean:.3g}"
    return text if entry.always else f"{text} ({entry.reached} of {len(entry.rows)})"


def _chosen(rows: Sequence[Row]) -> str:
    seen: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row["phase"] == "final":
            given = ", ".join(
                f"{name} {_short(value)}" for name, value in row["parameters"].items()
            )
            text = [row["task"], row["fleet"], f"`{row['policy']}`", given, f"{row['rate']:g}"]
            seen[row["task"], row["fleet"], row["policy"]] = text
    return _table(["task", "fleet", "policy", "setting", "rate"], [*seen.values()])


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


def _refused(rows: Sequence[Row]) -> str:
    found: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if "error" in row:
            found[row["task"], row["fleet"], row["policy"]] = row["error"]
    return _table(["task", "fleet", "policy", "error"], [[*k, v] for k, v in found.items()])


def _table(columns: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def draw(rows: Sequence[Row], task: str, path: Path) -> None:
    """Draw time against client time to the target, a panel per fleet and a point per policy."""
    drawn = figure(10.0, 9.0)
    panels = drawn.subplots(2, 2).ravel()
    for axes, fleet in zip(panels, settings.FLEETS, strict=True):
        for entry in entries(rows, task, fleet):
            if not entry.always:
                continue
            time, work = entry.cost("time"), entry.cost("work")
            style = KINDS.index(entry.kind)
            axes.errorbar(
                time.mean, work.mean, xerr=time.error, yerr=work.error, ls="",
                color=COLOURS[style], marker=MARKERS[style], ms=5,
            )  # fmt: skip
            axes.annotate(
                entry.policy, (time.mean, work.mean), fontsize=7, xytext=(4, 3),
                textcoords="offset points",
            )  # fmt: skip
        axes.set(title=fleet, xlabel="time to target, min", ylabel="client time, client-h")
        axes.set_xscale("log")
        axes.set_yscale("log")
        tidy(axes)
    for style, kind in enumerate(KINDS):
        panels[0].plot([], [], ls="", color=COLOURS[style], marker=MARKERS[style], label=kind)
    panels[0].legend(frameon=False, fontsize=8)
    save(drawn, path)


def write(folder: Path, rows: Sequence[Row], *, quick: bool = False) -> None:
    """Write the page and the pictures of the rows into a folder."""
    (folder / "README.md").write_text(page(rows, quick=quick), encoding="utf-8")
    for task in tasks(rows, settings.QUICK if quick else settings.FULL):
        draw(rows, task, folder / f"{task}.svg")


if __name__ == "__main__":
    lines = (HERE / "results.jsonl").read_text(encoding="utf-8").splitlines()
    write(HERE, [json.loads(line) for line in lines])
