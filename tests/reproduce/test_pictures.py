"""Marks and axes of pictures."""

from __future__ import annotations

import pytest

from cafe.analysis.statistics import Estimate
from cafe.reproduce import pictures


def test_error_bars_are_scaled() -> None:
    pytest.importorskip("matplotlib")
    _, axes = pictures.single_panel()
    drawn = pictures.draw_error_bars(axes, {1: Estimate(4.0, 1.0, 5)}, errors=2, unit=2)
    (dots, _, (bars,)) = drawn
    assert dots.get_xydata().tolist() == [[1.0, 2.0]]
    assert bars.get_segments()[0].tolist() == [[1.0, 1.0], [1.0, 3.0]]


def test_printed_values_are_hollow_markers() -> None:
    pytest.importorskip("matplotlib")
    _, axes = pictures.single_panel()
    pictures.draw_lines(axes, {"MCU": {1: Estimate(0.5, 0.1, 5)}}, {"MCU": {1: 0.6}})
    assert axes.get_legend_handles_labels()[1] == ["MCU, as printed", "MCU"]
    assert axes.lines[-1].get_markerfacecolor() == "white"


def test_only_the_given_values_are_marked_on_a_log_axis() -> None:
    pytest.importorskip("matplotlib")
    _, axes = pictures.single_panel()
    axes.plot([0.1, 3.0], [0.0, 1.0])
    pictures.set_log_axis(axes, [0.1, 0.5, 3.0])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "0.5", "3"]
    assert len(axes.get_xticks(minor=True)) == 0
