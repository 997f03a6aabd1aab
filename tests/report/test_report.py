"""Reports: the figures shown are the figures calculated, and a page needs nothing but itself."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Plan, frontier, plan
from cafe.report import page, plots, tables
from cafe.theory.expect import SCALARS
from cafe.wording import QUANTITIES, number


@pytest.fixture(scope="module")
def made() -> Plan:
    return plan(Federation(50, Exponential(1.0)), waste_price=20, broadcast_price=100)


def text_of(renderable: Any) -> str:
    console = Console(width=160, markup=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_every_quantity_has_words() -> None:
    assert set(QUANTITIES) == set(SCALARS) - {"quorum", "deadline"}


def test_tables_show_the_figures(made: Plan) -> None:
    text = text_of(tables.plan(made, made.sensitivity()))
    for rival in made.rivals:
        assert number(rival.cost) in text
    assert all(warning[:40] in text for warning in made.warnings)
    text = text_of(tables.expectation(made.expected))
    for name, (label, _, meaning) in QUANTITIES.items():
        assert label in text
        assert meaning in text
        assert number(getattr(made.expected, name)) in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (float("nan"), "undefined"), (float("inf"), "infinite"),
        (23456.7, "23,457"), (9999.6, "10,000"), (9999.4, "9,999"),
        (1234567, "1,234,567"), (0.012345, "0.01235"), (2.0, "2"), (1.5e9, "1.5e+09"),
    ],
)  # fmt: skip
def test_numbers_for_people(value: float | None, text: str) -> None:
    assert number(value) == text


def test_pictures_mark_every_optimum(made: Plan) -> None:
    (axes,) = plots.plan(made).axes
    drawn = [np.asarray(line.get_xdata(), dtype=float) for line in axes.lines]
    marked = {float(xs[0]) for xs in drawn if xs.size == 1}
    assert {o.deadline for o in made.local_optima} <= marked
    assert {r.expected.deadline for r in made.rivals} <= marked


class Outside(HTMLParser):
    """Collects what a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            inside = ("#", "data:")
            if name in ("src", "href", "xlink:href") and value and not value.startswith(inside):
                self.loaded.append(value)


def test_the_page_is_self_contained(made: Plan, tmp_path: Path) -> None:
    front = frontier(made.federation)
    file = tmp_path / "plan.html"
    page.write_plan(
        file, made, title="A <plan>", robustness=made.sensitivity(), front=front, story=["1 < 2"]
    )
    text = file.read_text(encoding="utf-8")
    parser = Outside()
    parser.feed(text)
    assert parser.loaded == []
    assert text.count("<svg") == 2
    assert "A &lt;plan&gt;" in text
    assert "1 &lt; 2" in text
    assert number(made.cost) in text


def test_the_same_picture_gives_the_same_bytes(made: Plan, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        plots.save(plots.plan(made), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
