"""Tables about a plan, as text: its rivals, and how robust it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cafe.report.cells import Cells
from cafe.wording import (
    QUANTITIES,
    format_interval,
    format_number,
    format_percent,
    quantity_label,
)

if TYPE_CHECKING:
    from cafe.planner import Frontier, Plan, Robustness
    from cafe.theory import Expectation

NEGLIGIBLE = 1e-6  # share of the clients' time in a round below which a quantity is shown as 0


def rivals(made: Plan) -> Cells:
    """The plan beside the usual rules of thumb; a star marks a broken limit."""
    entries = [("the plan", made.cost, made.expected)]
    entries += [
        (r.name.removeprefix("deadline = ") + " *" * bool(r.breaks), r.cost, r.expected)
        for r in made.rivals
    ]
    rows = []
    for name, cost, e in entries:
        figures = [format_number(e.deadline), format_number(cost)]
        figures += [format_quantity(quantity, e) for quantity in ("waste", "broadcasts", "age")]
        rows.append([name, f"{e.quorum}", *figures])
    note = " (* breaks a limit)" if any(r.breaks for r in made.rivals) else ""
    columns = ["deadline at", "quorum", "deadline", "cost", "waste", "broadcasts", "age"]
    return Cells(f"Compared with usual guesses{note}", columns, rows)


def intervals(made: Plan) -> Cells:
    """The main quantities of a plan with their 90 % intervals."""
    rows = []
    for name, interval in made.intervals.items():
        value = made.cost if name == "cost" else getattr(made.expected, name)
        label = "cost" if name == "cost" else quantity_label(name)
        rows.append([label, format_number(value), format_interval(interval.low, interval.high)])
    return Cells("What the observations say", ["", "expected", "90 % interval"], rows)


def frontier(front: Frontier) -> Cells:
    """The choices of a frontier, by growing deadline; the knee is marked."""
    rows = [
        [
            format_number(e.deadline),
            f"{e.quorum}",
            *(
                format_quantity(quantity, e)
                for quantity in (
                    "expected_reports",
                    "waste",
                    "waste_per_gradient",
                    "broadcasts",
                    "age",
                )
            ),
            "knee" if e is front.knee else "",
        ]
        for e in front.choices
    ]
    columns = ["deadline", "quorum", "reports", "waste", "per report", "broadcasts", "age", ""]
    title = "Choices; none is better than another in waste and broadcasts per report and age"
    return Cells(title, columns, rows, frozenset({7}))


def format_quantity(name: str, expected: Expectation) -> str:
    """An expected quantity; 0 if it is negligible compared with the deadline and the clients."""
    value = getattr(expected, name)
    unit = QUANTITIES[name][1]
    scale = 1.0 if not unit.startswith(("s", "client-s")) else expected.deadline
    if unit.startswith("client-s"):
        scale *= expected.setting.clients
    negligible = value is not None and abs(value) < NEGLIGIBLE * scale
    return "0" if negligible else format_number(value)


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
