"""Tables in the terminal show the same estimates as the page."""

from __future__ import annotations

from cafe.analysis.run_groups import group_runs
from cafe.cli import result_tables
from cafe.report import run_cells
from cafe.wording import format_estimate
from tests.support.runs import POLICIES, played
from tests.support.terminal import text_of


def test_terminal_tables_show_the_figures_of_the_groups() -> None:
    runs = [played(policy, seed, rounds=20) for policy in POLICIES for seed in (0, 1)]
    text = text_of(result_tables.comparison_tables(runs))
    for group in group_runs(runs):
        assert group.label in text
        for name in run_cells.COSTS[0][1]:
            found = group.estimate(name)
            assert format_estimate(found.mean, found.error) in text
    assert "seed by seed" in text
    alone = text_of(result_tables.simulation_tables(runs[:1]))
    assert "All runs" in alone
    assert "seed by seed" not in alone
