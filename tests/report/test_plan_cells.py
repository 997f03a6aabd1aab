"""Cells about plans: negligible quantities are 0, the knee is marked once, names are short."""

from __future__ import annotations

from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Plan, frontier
from cafe.report import plan_cells
from cafe.theory import expect

WHO = Federation(100, Exponential(1.0))


def test_negligible_quantities_are_0() -> None:
    late = expect(WHO, quorum=1, deadline=40.0)
    assert 0 < late.waste < 1e-10
    assert plan_cells.format_quantity("waste", late) == "0"
    early = expect(WHO, quorum=1, deadline=0.5)
    assert 0 < early.everybody_probability < 1e-20
    assert plan_cells.format_quantity("everybody_probability", early) == "0"
    assert plan_cells.format_quantity("waste", early) == "30.33"


def test_units_of_time_do_not_hide_quantities() -> None:
    tiny = expect(Federation(100, Exponential(1e9)), quorum=1, deadline=0.5e-9)
    assert plan_cells.format_quantity("waste", tiny) == "3.033e-08"
    assert plan_cells.format_quantity("age", tiny) != "0"


def test_frontier_marks_one_knee() -> None:
    front = frontier(WHO)
    cells = plan_cells.frontier(front)
    assert len(cells.rows) == len(front.choices) <= 12
    assert [row[-1] for row in cells.rows].count("knee") == 1


def test_rivals_are_named_by_their_deadline(made: Plan) -> None:
    names = [row[0] for row in plan_cells.rivals(made).rows]
    assert names[0] == "the plan"
    assert {"median", "mean", "2 x median", "wait for all"} <= set(names)
    assert len(names) <= 8
