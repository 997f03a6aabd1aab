"""Tables about a plan, as text: its rivals, and how robust it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cafe.report.cells import Cells
from cafe.wording import format_interval, format_number, format_percent, quantity_label

if TYPE_CHECKING:
    from cafe.planner import Plan, Robustness


def rivals(made: Plan) -> Cells:
    """The plan beside the usual rules of thumb; a star marks a broken limit."""
    entries = [("the plan", made.cost, made.expected)]
    entries += [(r.name + " *" * bool(r.breaks), r.cost, r.expected) for r in made.rivals]
    rows = []
    for name, cost, e in entries:
        figures = (e.deadline, cost, e.waste, e.broadcasts, e.age)
        rows.append([name, f"{e.quorum}", *(format_number(x) for x in figures)])
    note = " (* breaks a limit)" if any(r.breaks for r in made.rivals) else ""
    columns = ["", "quorum", "deadline", "cost", "waste", "broadcasts", "age"]
    return Cells(f"Compared with usual guesses{note}", columns, rows)


def intervals(made: Plan) -> Cells:
    """The main quantities of a plan with their 90 % intervals."""
    rows = []
    for name, interval in made.intervals.items():
        value = made.cost if name == "cost" else getattr(made.expected, name)
        label = "cost" if name == "cost" else quantity_label(name)
        rows.append([label, format_number(value), format_interval(interval.low, interval.high)])
    return Cells("What the observations say", ["", "expected", "90 % interval"], rows)


def sensitivity(robustness: Sequence[Robustness]) -> Cells:
    """The cost of the plan if the true response rates differ from the assumed ones."""
    rows = [
        [
            f"rates {r.rate_error:+.0%}" + " *" * bool(r.breaks),
            format_number(r.cost),
            format_number(r.best_cost),
            format_percent(r.loss),
        ]
        for r in robustness
    ]
    columns = ["true rates", "cost of the plan", "lowest possible cost", "extra cost"]
    note = " (* the plan breaks a limit)" if any(r.breaks for r in robustness) else ""
    return Cells(f"If response rates differ from those assumed{note}", columns, rows)
