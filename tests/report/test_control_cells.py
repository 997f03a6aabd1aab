"""Tables and plots of a controller's choices, on the page of runs and in the terminal."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import numpy as np
import pytest

from cafe.analysis.policy_steps import policy_steps
from cafe.cli import result_tables
from cafe.policies import mcu
from cafe.report import control_cells, control_plots, run_page
from cafe.wording import format_number
from tests.support.choosing import Doubling
from tests.support.html import check, rows_of
from tests.support.runs import Run, played
from tests.support.terminal import text_of


@pytest.fixture(scope="module")
def tuned() -> Run:
    return played(Doubling(18), rounds=20)


def test_page_has_every_change_with_its_reason(tuned: Run, tmp_path: Path) -> None:
    fixed = played(mcu(quorum=1, deadline=0.5), rounds=20)
    run_page.write(tmp_path / "page.html", [tuned, fixed])
    text = (tmp_path / "page.html").read_text()
    check(text)
    assert "<h2>Deadline and quorum</h2>" in text
    assert 'id="control-figure_1"' in text
    opened = tuned.history.by_round["opened"]
    rows = rows_of(text)
    for change in tuned.history.policy_changes:
        time, limit = format_number(float(opened[change.round])), format_number(change.deadline)
        assert [f"{change.round}", time, limit, "18", change.reason or "-"] in rows
    run_page.write(tmp_path / "fixed.html", [fixed])
    assert "Deadline and quorum" not in (tmp_path / "fixed.html").read_text()


def test_only_the_last_changes_are_in_a_long_table(tuned: Run) -> None:
    changes = tuned.history.policy_changes
    cells = control_cells.policy_changes(tuned.history, "doubling", 2)
    assert cells is not None
    assert cells.title == f"doubling, seed 0: the last 2 of {len(changes)} changes"
    assert [row[0] for row in cells.rows] == [f"{change.round}" for change in changes[-2:]]
    every = control_cells.policy_changes(tuned.history, "doubling", 100)
    assert every is not None
    assert every.title == f"doubling, seed 0: {len(changes)} changes"


def test_terminal_shows_the_last_three_reasons(tuned: Run) -> None:
    text = unescape(text_of(result_tables.simulation_tables([tuned])))
    reasons = [change.reason for change in tuned.history.policy_changes if change.reason]
    assert len(reasons) > 3
    assert [reason in text for reason in reasons] == [False] * (len(reasons) - 3) + [True] * 3
    assert f"why the policy changed, the last 3 of {len(reasons)} times" in text
    silent = text_of(
        result_tables.simulation_tables([played(mcu(quorum=1, deadline=0.5), rounds=3)])
    )
    assert "why the policy changed" not in silent


def test_plot_has_the_steps_of_each_run(tuned: Run) -> None:
    steps = policy_steps(tuned.history)
    assert steps is not None
    drawn = control_plots.deadline_and_quorum([("doubling", steps)])
    above, below = drawn.axes
    for axes, values in ((above, steps.deadline), (below, steps.quorum)):
        (line,) = axes.get_lines()
        assert line.get_drawstyle() == "steps-post"
        assert list(line.get_xdata()) == steps.time.tolist()  # type: ignore[arg-type]
        assert list(line.get_ydata()) == values.tolist()  # type: ignore[arg-type]


def test_deadlines_far_apart_have_a_logarithmic_axis(tuned: Run) -> None:
    steps = policy_steps(tuned.history)
    assert steps is not None
    first = np.arange(len(steps.time)) == 0
    scales = []
    for factor in (2.0, 1000.0):
        deadline = np.where(first, factor, 1.0)
        drawn = control_plots.deadline_and_quorum([("one", steps._replace(deadline=deadline))])
        scales.append(drawn.axes[0].get_yscale())
    assert scales == ["linear", "log"]
