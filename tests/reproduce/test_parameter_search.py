"""The search's rules choose the settings that the scenarios have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.experiments import table_agu
from cafe.reproduce.folder import read_rows
from cafe.reproduce.paper_tables import TABLE_AGU
from cafe.reproduce.parameter_search import (
    CELLS,
    choose_settings,
    rank_settings,
    setting_changes,
)
from cafe.reproduce.rows import Row
from cafe.reproduce.trials import load_scenario
from tests.support.reproductions import PAPER


@pytest.mark.parametrize("name", CELLS)
def test_settings_are_those_that_the_rule_chooses(name: str) -> None:
    best = choose_settings(read_rows(PAPER / "search"), name)
    scenario = load_scenario(name)
    for key, value in setting_changes(name, best["mcu"]).items():
        table, *path = key.split(".")
        found = scenario.tables[table]
        for step in path:
            found = found.get(step, {} if step != "steps" else 1)
        assert found == value, key
    if "agu" in best:  # the one scheme with a rate of its own
        assert (best["agu"]["rate"], best["agu"]["decay"]) == (table_agu.AGU_RATE, 0)


def searched(accuracy: Callable[[Row], float]) -> list[Row]:
    rows = [
        {"experiment": name, "steps": steps, "rate": rate, "decay": decay, "samples": 20}
        | {**cell, "seed": 1000}
        for name, cells in CELLS.items()
        for steps in (1, 5)
        for rate in (0.01, 0.1)
        for decay in (0, 1)
        for cell in cells
        if name != "table-agu" or (cell["policy"] == "mcu") == decay
    ]
    return [{**row, "accuracy": accuracy(row)} for row in rows]


def test_pictures_take_the_most_accurate_setting_of_one_step() -> None:
    rows = searched(lambda row: row["rate"] + row["steps"] / 10 + row["decay"] / 100)
    assert rank_settings(rows, "fig-deadline")[0]["steps"] == 5
    best = choose_settings(rows, "fig-deadline")["mcu"]
    assert (best["rate"], best["decay"], best["steps"]) == (0.1, 1, 1)


def test_tables_take_the_setting_nearest_to_the_printed_one() -> None:
    near = {("table-agu", 0.1, 1, 5), ("table-agu", 0.01, 0, 5)}
    wanted = {(row["quorum"], row["policy"]): row["accuracy"] for row in TABLE_AGU}

    def accuracy(row: Row) -> float:
        if row["experiment"].startswith("fig"):
            return 0.5
        exact = float(wanted[row["cell"], row["policy"]])
        at = (row["experiment"], row["rate"], row["decay"], row["steps"])
        return exact if at in near else exact - 0.2

    rows = searched(accuracy)
    agu_best = choose_settings(rows, "table-agu")
    assert (agu_best["mcu"]["rate"], agu_best["agu"]["rate"]) == (0.1, 0.01)
    assert agu_best["mcu"]["steps"] == agu_best["agu"]["steps"] == 5
