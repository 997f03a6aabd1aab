"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cafe.analysis import repeated_runs
from cafe.report import cells, run_cells
from cafe.report.cells import Cells
from cafe.rounds import NEEDS
from cafe.wording import QUANTITIES, counted, number

if TYPE_CHECKING:
    from cafe.analysis.run_groups import RunRecord
    from cafe.fitting import ClientFits, Fit
    from cafe.planner import Frontier, Plan, Robustness
    from cafe.theory import Expectation


def table(cells: Cells) -> Group:
    """A plain table below its title."""
    made = Table(box=None, pad_edge=False)
    for i, name in enumerate(cells.columns):
        made.add_column(name, justify="left" if i in cells.words else "right", overflow="fold")
    for row in cells.rows:
        made.add_row(*row)
    return Group(Text(cells.title, style="bold"), made)


def expectation(expected: Expectation) -> RenderableType:
    """Everything to expect of a quorum and a deadline."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column()
    made.add_column(justify="right")
    made.add_column(style="dim")
    made.add_column(style="dim", overflow="fold")
    for name, (label, unit, meaning) in QUANTITIES.items():
        made.add_row(label, number(getattr(expected, name)), unit, meaning)
    head = Text.assemble(
        (f"quorum {expected.quorum}, deadline {expected.deadline:.6g}", "bold"),
        f" for {counted(expected.setting.clients, 'client')}",
    )
    return Group(head, Padding(made, (0, 0, 0, 2)), *_warnings(expected.warnings))


def plan(made: Plan, robustness: Sequence[Robustness]) -> RenderableType:
    """A plan: the choice, its three sentences, warnings, rivals, optima, sensitivity."""
    head = Text.assemble(
        ("quorum ", "dim"), (f"{made.quorum}", "bold green"), ("   deadline ", "dim"),
        (f"{made.deadline:.6g}", "bold green"), ("   cost ", "dim"), (f"{made.cost:.6g}", "bold"),
        (f"   {made.goal.describe()}", "dim"),
    )  # fmt: skip
    parts: list[RenderableType] = [head, Text(" ".join(made.explanation)), Text()]
    parts += _warnings(made.warnings)
    if made.warnings:
        parts.append(Text())
    parts += [table(cells.choices(made)), Text()]
    if len(made.local_optima) > 1:
        rows = [
            [f"deadline {o.deadline:.6g}", f"{o.quorum}", f"{o.cost:.6g}"]
            for o in made.local_optima
        ]
        parts += [table(Cells("Every local optimum", ["", "quorum", "cost"], rows)), Text()]
    if robustness:
        parts.append(table(cells.sensitivity(robustness)))
    return Group(*parts)


def frontier(front: Frontier, most: int = 25) -> Group:
    """The Pareto frontier, thinned to fit a screen."""
    step = max(1, -(-len(front.points) // most))
    rows = [
        [number(p.deadline), f"{p.quorum}", *(number(x) for x in (p.waste, p.broadcasts, p.age))]
        for p in front.points[::step]
    ]
    title = f"{len(front.points)} choices, none better than another in all three"
    columns = ["deadline", "quorum", "waste", "broadcasts", "age"]
    return Group(table(Cells(title, columns, rows)), *_warnings(front.warnings))


def _warnings(sentences: Sequence[str]) -> list[Text]:
    return [Text(f"! {sentence}", style="yellow") for sentence in sentences]


def fit(found: Fit) -> RenderableType:
    """The families side by side, and the best one's parameters."""
    rows = [
        [
            c.family,
            f"{c.aic:.2f}",
            f"{c.bic:.2f}",
            f"{c.log_likelihood:.2f}",
            f"{c.distance:.4f}",
            ", ".join(
                estimate(name, value, c.standard_errors[name])
                for name, value in c.parameters.items()
            ),
        ]
        for c in found.candidates
    ]
    columns = ["family", "AIC", "BIC", "log-likelihood", "max |KM - fit|", "parameters"]
    seen = found.observations
    reports = int(seen.reported.sum())
    head = (
        f"{counted(reports, 'report')} and {counted(len(seen) - reports, 'missed deadline')} "
        f"of {counted(len(seen.clients), 'client')}"
    )
    parts: list[RenderableType] = [Text(head), Text()]
    parts.append(table(Cells("Families, the best first", columns, rows)))
    if any(c.complexity > len(c.parameters) for c in found.candidates):
        note = (
            f"Ranked by {found.criterion.upper()}, a shift, an end or a mixture's part counted "
            "for as many parameters as it fits noise like."
        )
        parts.append(Text(note, style="dim"))
    parts += [Text(f"left out {k}: {why}", style="dim") for k, why in found.skipped.items()]
    return Group(*parts, Text(), goodness(found))


def estimate(name: str, value: float, error: float) -> str:
    """A parameter with its standard error, where it has one."""
    return f"{name} {value:.4g} ± {error:.2g}" if error == error else f"{name} {value:.4g}"


def goodness(found: Fit, most: int = 8) -> Group:
    """What was observed beside what the best family says, at times spread over the reports."""
    times, survival, error = found.kaplan_meier()
    picked = np.unique(np.linspace(0, times.size - 1, most).round().astype(int))
    rows = [
        [
            f"by {number(float(times[i]))} s",
            f"{1 - survival[i]:.3f} ± {error[i]:.3f}",
            f"{float(found.latency.cdf(times[i])):.3f}",
        ]
        for i in picked
    ]
    columns = ["have reported", "observed (Kaplan-Meier)", found.best.family]
    return table(Cells("Goodness of fit", columns, rows))


def clients(each: ClientFits, most: int = 12) -> RenderableType:
    """Every client's slowness; the slowest few where they are many."""
    order = np.argsort(-each.scale)[:most]
    means = np.broadcast_to(each.latency.mean(), each.scale.shape)
    rows = [
        [
            each.clients[i],
            f"{each.scale[i]:.3g}",
            f"{each.standard_error[i]:.2f}",
            number(float(means[i])),
            f"{each.reports[i]}",
            f"{each.misses[i]}",
        ]
        for i in order
    ]
    columns = ["client", "times as slow", "± log", "mean, s", "reports", "missed"]
    shown = "" if len(each.clients) <= most else f", the {most} slowest"
    head = (
        f"{counted(len(each.clients), 'client')}{shown}: {each.family}, "
        f"spread between clients {each.spread:.2f} (log)"
    )
    return table(Cells(head, columns, rows))


def runs(results: Sequence[RunRecord], accuracy: float | None = None) -> RenderableType:
    """Runs by policy: how they went, what they cost, and each policy against the first.

    Args:
        results: the runs; those that differ in their seed alone are repeats.
        accuracy: the one to measure the way to; left out, the highest that every run reached.
    """
    groups = repeated_runs.repeats(results)
    found: list[Cells | None] = [
        run_cells.results(groups),
        run_cells.until(groups, accuracy),
        *run_cells.costs(groups),
        *map(run_cells.differences, repeated_runs.by_scenario(groups)),
    ]
    if len(groups) == 1:
        found += [run_cells.fates(groups), run_cells.theory(groups[0])]
    parts: list[RenderableType] = [Text(repeated_runs.summary(groups), style="bold"), Text()]
    for shown in found:
        if shown is not None:
            parts += [table(shown), Text()]
    return Group(*parts, Text(f"{repeated_runs.described(groups)}.", style="dim"))


def policies(recipes: Mapping[str, Callable[..., Any]]) -> RenderableType:
    """Every recipe: what it does, what it must know, and its parameters."""
    head, *each = run_cells.policies(recipes)
    parts: list[RenderableType] = [table(head), Text()]
    for shown in each:
        parts += [table(shown), Text()]
    met = [need for need in NEEDS if any(need in row[-1] for row in head.rows)]
    parts += [Text(f"{need}: {NEEDS[need]}", style="dim") for need in met]
    return Group(*parts)
