"""Means and standard errors over seeds; the best settings first, in 80 columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.sweep.measures import SweepMeasure
from cafe.sweep.ranking import rank_settings
from cafe.sweep.ranking_table import WIDTH, best_settings, format_value, short_names
from cafe.sweep.sweep import SweepResult
from cafe.sweep.sweep_cell import CellResult, SweepCell
from cafe.sweep.sweep_plots import measure_by_key
from tests.sweep.conftest import SweepFolder


def result(point: int, seed: int, age: float, reason: str = "", more: Any = None) -> CellResult:
    values = {"policy.quorum": point, "policy.deadline": 0.5, **(more or {})}
    cell = SweepCell(point, values, "mcu", seed)
    return CellResult(cell, {} if reason else {"mean_age": age}, reason)


RESULTS = [
    result(0, 0, 5.0), result(0, 7, 6.0),
    result(1, 0, 1.0), result(1, 7, 4.0),
    result(2, 0, 0.1), result(2, 7, 0.0, "too much"),
    result(3, 0, 2.0), result(3, 7, float("inf")),
]  # fmt: skip


def test_settings_are_ranked_by_their_mean() -> None:
    less = rank_settings(RESULTS, SweepMeasure("mean_age", "minimise"))
    assert [one.point for one in less] == [1, 0, 3, 2], "failed ones are last"
    assert less[0].estimate.mean == 2.5
    assert less[0].estimate.error == pytest.approx(np.std([1.0, 4.0], ddof=1) / np.sqrt(2))
    assert (less[3].failed, less[3].reason, less[3].estimate.count) == (1, "too much", 1)
    more = rank_settings(RESULTS[:4], SweepMeasure("mean_age", "maximise"))
    assert [one.point for one in more] == [0, 1]


def finished(
    workspace: SweepFolder, *changes: tuple[str, str], results: list[CellResult] = RESULTS
) -> SweepResult:
    sweep = workspace.sweep(*changes)
    return SweepResult(sweep, results, rank_settings(results, sweep.measure), Path("t.parquet"))


def test_the_table_has_a_column_per_key(workspace: SweepFolder) -> None:
    found = best_settings(finished(workspace, ("seeds", 'policies = ["mcu"]\nseeds')), 3)
    assert found.title == "The best 3 of 4 settings, lowest mean age first"
    assert found.columns == ["quorum", "deadline", "mean age", "seeds"]
    assert found.rows[0] == ["1", "0.5", "2.5 ± 1.5", "2"]
    everything = best_settings(finished(workspace))
    assert everything.title.startswith("All settings")
    assert everything.columns[0] == "policy"
    assert everything.rows[2][3] == "infinite"
    assert everything.rows[3] == ["mcu", "2", "0.5", "0.1", "1 of 2"]


def test_an_accuracy_may_not_be_reached(workspace: SweepFolder) -> None:
    never = CellResult(RESULTS[0].cell, {"time_to_accuracy": float("inf")})
    change = ('"mean_age"', '"time_to_accuracy"\naccuracy = 0.8')
    found = best_settings(finished(workspace, change, results=[never]))
    assert found.title == "All settings, lowest time to accuracy first (accuracy 80%)"
    assert found.rows[0][-2:] == ["not reached", "2"]


def test_many_keys_share_a_column(workspace: SweepFolder) -> None:
    long = [f"run.some_long_key_{i}" for i in range(9)]
    keys = "\n".join(f"{key} = [1234567]" for key in long)
    results = [result(0, seed, 1.0, more=dict.fromkeys(long, 1234567)) for seed in (0, 7)]
    made = finished(workspace, ("[sweep.values]", f"[sweep.values]\n{keys}"), results=results)
    found = best_settings(made)
    assert found.columns == ["policy", "values", "mean age", "seeds"]
    lines = found.rows[0][1].splitlines()
    assert len(lines) > 1
    assert "some_long_key_8 1,234,567" in found.rows[0][1].replace("\n", " ")
    fixed = sum(len(found.rows[0][i]) for i in (0, 3)) + len("mean age") + len("seeds")
    assert max(map(len, lines)) + fixed <= WIDTH


def test_names_and_values_are_short() -> None:
    assert short_names(["policy.rate", "task.rate", "run.time"]) == [
        "policy.rate",
        "task.rate",
        "time",
    ]
    assert [format_value(v) for v in (True, 0.5, "iid", [32], 20000)] == [
        "true", "0.5", "iid", "[32]", "20,000",
    ]  # fmt: skip


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
        result(i, 0, 1.0 + i, more={"task.partition": v}) for i, v in enumerate(("iid", "x"))
    ]
    change = ("policy.deadline = [0.5, 1]", 'task.partition = ["iid", "x"]')
    panel = measure_by_key(finished(workspace, change, results=results)).axes[1]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["iid", "x"]
