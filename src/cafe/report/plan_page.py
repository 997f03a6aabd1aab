"""The page of a plan: its reasons, its pictures, and everything to expect."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cafe.report import page, plan_cells, plan_plots
from cafe.report.cells import Cells
from cafe.report.page import paragraphs, picture, table
from cafe.wording import QUANTITIES

if TYPE_CHECKING:
    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan, Robustness


def write(
    path: str | Path,
    made: Plan,
    *,
    title: str,
    robustness: Sequence[Robustness] = (),
    front: Frontier | None = None,
) -> None:
    """Write the page of a plan, with its robustness and the frontier if given."""
    page.write(path, title, parts(made, robustness=robustness, front=front))


def parts(
    made: Plan,
    *,
    robustness: Sequence[Robustness] = (),
    front: Frontier | None = None,
    found: Fit | None = None,
) -> list[str]:
    """The parts of a plan's page, as HTML."""
    body = _plan(made)
    if robustness:
        body.append(table(plan_cells.sensitivity(robustness)))
    if found is not None:
        caption = "The share of clients that have reported by each time: observed and fitted."
        body.append("<h2>Response times</h2>")
        body.append(picture(plan_plots.fit(found), "fit", caption))
    if front is not None:
        caption = (
            "Each dot is a deadline. No other one is better in waste per report, broadcasts per "
            "report and age at once. Lower is less waste, further left is a lower age. The ring "
            "marks the knee, the choice with the least time to a given accuracy."
        )
        body.append("<h2>The frontier of choices</h2>")
        body.append(picture(plan_plots.frontier(front, made), "frontier", caption))
        body.append(table(plan_cells.frontier(front)))
    body.append(_expected(made))
    body.append(f"<p class=dim>For {escape(repr(made.federation))}.</p>")
    return body


def _plan(made: Plan) -> list[str]:
    more = "".join(
        f"{name} <b>{made.rules[name]:,}</b>, "
        for name in ("cohort", "target")
        if name in made.rules
    )
    head = (
        f"<p class=big>Quorum <b>{made.quorum}</b>, deadline <b>{made.deadline:.4g}</b>, {more}"
        f"cost {made.cost:.4g} <span class=dim>{escape(made.goal.describe())}</span></p>"
    )
    caption = "The cost of each deadline, and the parts of the cost. Lower is better."
    return [
        head,
        *paragraphs((*made.explanation, *made.goal_notes)),
        *(f"<p class=warn>{escape(warning)}</p>" for warning in made.warnings),
        picture(plan_plots.plan(made), "plan", caption),
        *([table(plan_cells.intervals(made))] if made.intervals else []),
        table(plan_cells.rivals(made)),
    ]


def _expected(made: Plan) -> str:
    rows = [
        [label, plan_cells.format_quantity(name, made.expected), unit, meaning]
        for name, (label, unit, meaning) in QUANTITIES.items()
    ]
    return table(Cells("Everything to expect", ["", "", "", ""], rows, frozenset({0, 2, 3})))
