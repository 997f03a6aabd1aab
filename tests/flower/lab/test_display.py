"""Tables of a run."""

from __future__ import annotations

import io

from rich.console import Console

from cafe.flower.lab import display
from tests.support.flower.live_files import LIVE


def test_tables() -> None:
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(display.run_table(LIVE))
    text = screen.export_text()
    assert "open, round 3 of 20, 1 of 4 reports, deadline 8.0 s, success 75%" in text
    assert "reports" not in display.run_line(LIVE | {"invited": 0})  # between two rounds
    assert text.index("node-2") < text.index("node-10")
    assert "away" in text
    assert "busy" in text
