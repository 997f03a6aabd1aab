"""Tables in the terminal show the calculated figures."""

from __future__ import annotations

from cafe.planner import Plan
from cafe.report import (
    tables,
)
from cafe.wording import (
    QUANTITIES,
    format_number,
)
from tests.support.terminal import text_of


def test_tables_show_the_figures(made: Plan) -> None:
    text = text_of(tables.plan(made, made.sensitivity()))
    for rival in made.rivals:
        assert format_number(rival.cost) in text
    assert all(warning[:40] in text for warning in made.warnings)
    text = text_of(tables.expectation(made.expected))
    for name, (label, _, meaning) in QUANTITIES.items():
        assert label in text
        assert meaning in text
        assert format_number(getattr(made.expected, name)) in text
