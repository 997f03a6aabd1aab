"""Plots: styles that differ in more than colour, and files with the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.planner import Plan
from cafe.report import (
    plan_plots,
    plotting,
)

pytestmark = pytest.mark.slow


def test_policies_differ_in_colour_and_line_style() -> None:
    looks = [
        (plotting.line_style(i)["color"], str(plotting.line_style(i)["ls"])) for i in range(20)
    ]
    assert len(set(looks)) == 20
    assert len({dashes for _, dashes in looks[:5]}) == 5


def test_the_same_picture_gives_the_same_bytes(made: Plan, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        plotting.save(plan_plots.plan(made), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("ending", plotting.FORMATS)
def test_every_format_can_be_written(made: Plan, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"plan.{ending}"
    plotting.save(plan_plots.plan(made), path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("name", ["plan.webp", "plan.gif", "plan.pgf", "plan"])
def test_other_formats_are_refused(name: str) -> None:
    with pytest.raises(FileError, match=f"Got '{name}'"):
        plotting.check_format(name)
