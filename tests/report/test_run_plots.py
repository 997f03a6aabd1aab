"""Plots of runs: every fate has a style, bars and marks are where they should be."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.analysis.run_groups import group_runs
from cafe.report import (
    run_plots,
)
from cafe.rounds import Fate
from cafe.wording import (
    FATES,
)
from tests.support.runs import Run


def test_every_fate_has_a_word_and_a_style_and_a_legend_entry_if_it_occurs(
    learned: list[Run],
) -> None:
    assert list(FATES) == [*(fate.name.lower() for fate in Fate), "open"]
    assert set(run_plots.FATE_STYLES) == set(FATES)
    assert len(set(run_plots.FATE_STYLES.values())) == len(FATES)
    (legend,) = run_plots.fates(group_runs(learned)).legends
    shown = [entry.get_text() for entry in legend.get_texts()]
    met = [fate for fate in FATES if any(run.history.fates.get(fate) for run in learned)]
    assert 0 < len(met) < len(FATES)
    assert shown == [f"{FATES[fate][0]}: {FATES[fate][1]}" for fate in met]


def test_lengths_of_bars_are_frequencies_of_fates(learned: list[Run]) -> None:
    groups = group_runs(learned)
    (axes,) = run_plots.fates(groups).axes
    lengths = [float(bar.get_width()) for bar in axes.patches]  # type: ignore[attr-defined]
    expected = [
        100 * count / sum(group.fates.values())
        for group in groups
        for count in group.fates.values()
        if count
    ]
    assert lengths == pytest.approx(expected)
    assert sum(lengths) == pytest.approx(100 * len(groups))


def test_theory_plot_shows_the_measured_values(ledgers: list[Run]) -> None:
    groups = group_runs(ledgers)
    drawn = run_plots.theory(groups)
    assert drawn is not None
    (axes,) = drawn.axes
    dots = {round(float(np.asarray(line.get_xdata())[0]), 9) for line in axes.get_lines()}
    for group in groups:
        expected, found = group.expected["waste"], group.estimate("waste").mean
        assert round(100 * (found / expected - 1), 9) in dots
    without = [Run(run.history) for run in ledgers]
    assert run_plots.theory(group_runs(without)) is None
