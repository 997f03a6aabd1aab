"""The best settings as a table of text, in 80 columns."""

from __future__ import annotations

from cafe.sweep.ranking_table import WIDTH, best_settings, format_value, short_names
from cafe.sweep.sweep_cell import CellResult
from tests.support.finished_sweeps import RESULTS, cell_result, finished
from tests.sweep.conftest import SweepFolder


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
    results = [cell_result(0, seed, 1.0, more=dict.fromkeys(long, 1234567)) for seed in (0, 7)]
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
