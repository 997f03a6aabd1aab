"""What tables hold, as text: the same for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cafe.wording import number, percent

if TYPE_CHECKING:
    from cafe.planner import Plan, Robustness


@dataclass(frozen=True)
class Cells:
    """A table: text, row by row.

    Attributes:
        title: above it.
        columns: their names.
        rows: a text for each column.
        words: which columns hold words; all others hold figures.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[int] = frozenset({0})


def choices(made: Plan) -> Cells:
    """The plan beside what people choose without one; a star marks a broken limit."""
    entries = [("the plan", made.cost, made.expected)]
    entries += [(r.name + " *" * bool(r.breaks), r.cost, r.expected) for r in made.rivals]
    rows = []
    for name, cost, e in entries:
        figures = (e.deadline, cost, e.waste, e.broadcasts, e.age)
        rows.append([name, f"{e.quorum}", *(number(x) for x in figures)])
    note = " (* breaks a limit)" if any(r.breaks for r in made.rivals) else ""
    columns = ["", "quorum", "deadline", "cost", "waste", "broadcasts", "age"]
    return Cells(f"Against the usual guesses{note}", columns, rows)


def sensitivity(robustness: Sequence[Robustness]) -> Cells:
    """What the plan loses if rates are off."""
    rows = [
        [
            f"rates {r.rate_error:+.0%}" + " *" * bool(r.breaks),
            number(r.cost),
            number(r.best_cost),
            percent(r.loss),
        ]
        for r in robustness
    ]
    columns = ["if true", "cost of the plan", "cost of the best", "lost"]
    note = " (* the plan breaks a limit)" if any(r.breaks for r in robustness) else ""
    return Cells(f"If response rates are not what was assumed{note}", columns, rows)
