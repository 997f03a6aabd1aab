"""The page of a plan needs no other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.planner import Plan, frontier
from cafe.report import (
    plan_page,
)
from cafe.wording import (
    format_number,
)
from tests.support.html import Page


@pytest.mark.slow
def test_the_page_is_self_contained(made: Plan, tmp_path: Path) -> None:
    front = frontier(made.federation)
    file = tmp_path / "plan.html"
    plan_page.write(file, made, title="A <plan>", robustness=made.sensitivity(), front=front)
    text = file.read_text(encoding="utf-8")
    assert Page(text).loaded == []
    assert text.count("<svg") == 2
    assert "A &lt;plan&gt;" in text
    assert format_number(made.cost) in text
