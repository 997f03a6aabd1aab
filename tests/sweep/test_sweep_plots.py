"""Pictures of sweeps: a panel per key."""

from __future__ import annotations

import pytest

from cafe.sweep.sweep_plots import measure_by_key
from tests.support.finished_sweeps import cell_result, finished
from tests.sweep.conftest import SweepFolder


@pytest.mark.parametrize("values", ["[0, 1, 2, 3]", "{low = 1, high = 4, log = true}"])
def test_a_picture_has_a_panel_per_key(workspace: SweepFolder, values: str) -> None:
    samples = ("seeds", "samples = 4\nseeds") if "low" in values else ("seeds", "seeds")
    changes = [("policy.quorum = [3, 5]", f"policy.quorum = {values}"), samples]
    drawn = measure_by_key(finished(workspace, *changes))
    first, second = drawn.axes
    assert first.get_xlabel() == "policy.quorum"
    assert first.get_ylabel() == "mean age"
    assert second.get_xlabel() == "policy.deadline"
    assert first.get_xscale() == ("log" if "low" in values else "linear")
    assert [*first.lines[0].get_xdata()] == [0, 1], "without those that failed or are infinite"  # type: ignore[misc]


def test_values_that_are_no_numbers_have_labels(workspace: SweepFolder) -> None:
    results = [
        cell_result(i, 0, 1.0 + i, more={"task.partition": v}) for i, v in enumerate(("iid", "x"))
    ]
    change = ("policy.deadline = [0.5, 1]", 'task.partition = ["iid", "x"]')
    panel = measure_by_key(finished(workspace, change, results=results)).axes[1]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["iid", "x"]
