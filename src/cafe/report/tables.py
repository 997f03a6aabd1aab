"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cafe.analysis.fit_curves import fit_points
from cafe.report import plan_cells
from cafe.report.cells import Cells
from cafe.report.plan_cells import format_quantity
from cafe.wording import QUANTITIES, format_count, format_number

if TYPE_CHECKING:
    from cafe.fitting import ClientFits, Fit
    from cafe.planner import Frontier, Plan, Robustness
    from cafe.theory import Expectation

WIDE = 110  # columns of a terminal in which tables have all their columns


def table(cells: Cells) -> Group:
    """A plain table below its title."""
    made = Table(box=None, pad_edge=False)
    for i, name in enumerate(cells.columns):
        made.add_column(name, justify="left" if i in cells.words else "right", overflow="fold")
    for row in cells.rows:
        made.add_row(*row)
    return Group(Text(cells.title, style="bold"), made)


def expectation(expected: Expectation) -> RenderableType:
    """All expected values for a quorum and a deadline."""
    rules = f"quorum {expected.quorum}, deadline {expected.deadline:.6g}"
    if expected.setting.cohort is not None:
        rules += f", cohort {expected.cohort}"
        rules += "" if expected.target is None else f", target {expected.target}"
    head = Text.assemble(
        (rules, "bold"), f" for {format_count(expected.setting.clients, 'client')}"
    )
    tables = []
    for columns in (4, 3):  # in a narrow terminal without the meanings
        made = Table(box=None, pad_edge=False, show_header=False)
        for i in range(columns):
            made.add_column(justify="right" if i == 1 else "left", style="dim" if i > 1 else "")
        for name, (label, unit, meaning) in QUANTITIES.items():
            made.add_row(*(label, format_quantity(name, expected), unit, meaning)[:columns])
        tables.append(Padding(made, (0, 0, 0, 2)))
    return Group(head, ByWidth(*tables), *_warnings(expected.warnings))


@dataclass(frozen=True)
class ByWidth:
    """The wide form of a table if the terminal has 110 columns, else the narrow one."""

    wide: RenderableType
    narrow: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.wide if options.max_width >= WIDE else self.narrow


def plan(made: Plan, robustness: Sequence[Robustness]) -> RenderableType:
    """A plan: the choice, its explanation, warnings, rivals, local optima and sensitivity."""
    more = [
        part
        for name in ("cohort", "target")
        if name in made.rules
        for part in ((f"   {name} ", "dim"), (f"{made.rules[name]}", "bold green"))
    ]
    head = Text.assemble(
        ("quorum ", "dim"), (f"{made.quorum}", "bold green"), ("   deadline ", "dim"),
        (f"{made.deadline:.6g}", "bold green"), *more, ("   cost ", "dim"),
        (f"{made.cost:.6g}", "bold"), (f"   {made.goal.describe()}", "dim"),
    )  # fmt: skip
    parts: list[RenderableType] = [head, Text(" ".join(made.explanation)), Text()]
    if made.goal_notes:
        parts += [Text(" ".join(made.goal_notes)), Text()]
    if more:
        rules = ", ".join(f"{name}={value:.6g}" for name, value in made.rules.items())
        parts += [Text(f"As a policy: cafe.policies.mcu({rules})"), Text()]
    parts += _warnings(made.warnings)
    if made.warnings:
        parts.append(Text())
    if made.intervals:
        parts += [table(plan_cells.intervals(made)), Text()]
    parts += [table(plan_cells.rivals(made)), Text()]
    if len(made.local_optima) > 1:
        rows = [
            [f"deadline {o.deadline:.6g}", f"{o.quorum}", f"{o.cost:.6g}"]
            for o in made.local_optima
        ]
        parts += [table(Cells("All local optima", ["", "quorum", "cost"], rows)), Text()]
    if robustness:
        parts.append(table(plan_cells.sensitivity(robustness)))
    return Group(*parts)


def frontier(front: Frontier) -> Group:
    """The choices of the Pareto frontier, with the knee marked."""
    return Group(table(plan_cells.frontier(front)), *_warnings(front.warnings))


def _warnings(sentences: Sequence[str]) -> list[Text]:
    return [Text(f"! {sentence}", style="yellow") for sentence in sentences]


def fit(found: Fit) -> RenderableType:
    """The fitted families, the best first, and the goodness of fit."""
    rows = [
        [
            c.family,
            f"{c.aic:.2f}",
            f"{c.bic:.2f}",
            f"{c.log_likelihood:.2f}",
            f"{c.distance:.4f}",
            ", ".join(
                format_parameter(name, value, c.standard_errors[name])
                for name, value in c.parameters.items()
            ),
        ]
        for c in found.candidates
    ]
    columns = ["family", "AIC", "BIC", "log-likelihood", "max |KM - fit|", "parameters"]
    ranked = 1 if found.criterion == "aic" else 2
    forms = [
        table(
            Cells(
                "Families, the best first",
                [columns[i] for i in kept],
                [[row[i] for i in kept] for row in rows],
                frozenset({0, len(kept) - 1}),
            )
        )
        for kept in ((0, 1, 2, 3, 4, 5), (0, ranked, 4, 5))
    ]
    seen = found.observations
    reports = int(seen.reported.sum())
    misses = format_count(len(seen) - reports, "missed deadline")
    clients = format_count(len(seen.clients), "client")
    head = f"{format_count(reports, 'report')} and {misses} of {clients}"
    parts: list[RenderableType] = [Text(head), Text()]
    parts.append(ByWidth(*forms))
    if any(c.complexity > len(c.parameters) for c in found.candidates):
        note = (
            f"Ranked by {found.criterion.upper()}. A shift, an end point or a mixture component "
            "counts as the number of parameters that would fit noise equally well."
        )
        parts.append(Text(note, style="dim"))
    parts += [Text(f"left out {k}: {why}", style="dim") for k, why in found.skipped.items()]
    return Group(*parts, Text(), goodness(found), *_warnings(found.warnings))


def format_parameter(name: str, value: float, error: float) -> str:
    """A parameter with its standard error, if that is known."""
    return f"{name} {value:.4g} ± {error:.2g}" if error == error else f"{name} {value:.4g}"


def goodness(found: Fit, most: int = 8) -> Group:
    """Observed and fitted shares of reports at up to ``most`` times."""
    rows = [
        [
            f"by {format_number(point.time)} s",
            f"{point.observed:.3f} ± {point.error:.3f}",
            f"{point.fitted:.3f}",
        ]
        for point in fit_points(found, most)
    ]
    columns = ["have reported", "observed (Kaplan-Meier)", found.best.family]
    return table(Cells("Goodness of fit", columns, rows))


def clients(each: ClientFits, most: int = 12, found_already: Sequence[str] = ()) -> RenderableType:
    """The ``most`` slowest clients: how slow each is, and how often it answers.

    Warnings follow, except those in ``found_already``, which were shown before.
    """
    order = np.argsort(-each.scale)[:most]
    means = np.broadcast_to(each.latency.mean(), each.scale.shape)
    rows = [
        [
            each.clients[i],
            f"{each.scale[i]:.3g}",
            f"{each.standard_error[i]:.2f}",
            format_number(float(means[i])),
            f"{each.availability[i]:.3g}",
            f"{each.availability_error[i]:.2g}",
            f"{each.reports[i]}",
            f"{each.misses[i]}",
        ]
        for i in order
    ]
    columns = [
        "client", "times as slow", "± log", "mean, s", "availability", "±", "reports", "missed",
    ]  # fmt: skip
    shown = "" if len(each.clients) <= most else f", the {most} slowest"
    low, high = (f"{share:.3g}" for share in each.availability_range)
    head = (
        f"{format_count(len(each.clients), 'client')}{shown}: {each.family}, "
        f"spread between clients {each.spread:.2f} (log), "
        f"mean availability {float(each.availability.mean()):.3g} ({low} to {high})"
    )
    new = [sentence for sentence in each.warnings if sentence not in found_already]
    return Group(table(Cells(head, columns, rows)), *_warnings(new))
