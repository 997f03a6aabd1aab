"""The search for the setting of Table I follows its rules, and the scenario has what it chooses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.reproduce import table_awu_search as search
from cafe.reproduce.folder import read_rows
from cafe.reproduce.rows import Row, select
from cafe.reproduce.trials import load_scenario
from tests.support.reproductions import PAPER

BASE = {"decay": 0, "steps": 1, "samples": 500, "points": 5}


def rows_of(
    step: str, settings: list[Row], off: Callable[[Row], float], seeds: tuple[int, ...] = (1000,)
) -> list[Row]:
    """Every cell of the settings, ``off`` above the printed accuracy."""
    return [
        {"step": step, **setting, "share": share, "policy": policy, "seed": seed}
        | {"accuracy": printed + off(setting)}
        for setting in settings
        for (share, policy), printed in search.PRINTED.items()
        for seed in seeds
        if step == search.LAST or share in search.SHARES
    ]


def test_scenario_has_the_setting_that_the_rule_chooses() -> None:
    chosen = search.choose_setting(read_rows(PAPER / "search-awu"))
    scenario = load_scenario("table-awu")
    for key, value in search.setting_changes(chosen).items():
        table, *path = key.split(".")
        found = scenario.tables[table]
        for step in path:
            found = found.get(step, {} if step != path[-1] or step != "steps" else 1)
        assert found == value, key


def test_kept_rows_are_those_of_the_steps() -> None:
    """Later settings follow from the rows of earlier steps; all cells have run."""
    rows = read_rows(PAPER / "search-awu")
    before: list[Row] = []
    for step, settings in (
        (search.FIRST, search.first_settings()),
        (search.GRID, search.grid_settings()),
        (search.AROUND, None),
        (search.LAST, None),
    ):
        if step == search.AROUND:
            settings = search.settings_around(before)
        if step == search.LAST:
            settings = search.finalists(before)
        assert settings is not None
        own = select(rows, step=step)
        cells = 10 * search.FINAL_SEEDS if step == search.LAST else 4
        assert len(own) == cells * len(settings)
        assert {search._identity(row) for row in own} == {search._identity(s) for s in settings}
        before += own
    assert len(before) == len(rows)


def test_distance_is_the_root_mean_square_of_mean_accuracies() -> None:
    """By hand: two seeds that are 0.1 above and below, one cell that is 0.3 above in both."""
    cells = [(0.05, "mcu"), (0.3, "awu")]
    rows = [
        {"share": share, "policy": policy, "seed": seed}
        | {"accuracy": search.PRINTED[share, policy] + (0.3 if policy == "awu" else off)}
        for share, policy in cells
        for seed, off in ((1000, 0.1), (1001, -0.1))
    ]
    assert search.distance(rows) == pytest.approx(np.sqrt(0.3**2 / 2))
    assert search.seed_distances(rows) == pytest.approx([np.sqrt((0.3**2 + 0.1**2) / 2)] * 2)


def test_settings_around_the_nearest_one() -> None:
    near = {"init": "torch", "hidden": "200-100-50", "rate": 0.015, **BASE}
    rows = rows_of(
        search.GRID,
        search.grid_settings(),
        lambda s: 0.01 * (search._identity(s) != search._identity(near)),
    )
    found = search.settings_around(rows)
    assert {(s["init"], s["hidden"], s["steps"]) for s in found} == {("torch", "200-100-50", 1)}
    assert [s["rate"] for s in found if s["decay"]] == [0.02, 0.03, 0.04]
    assert [(s["rate"], s["samples"], s["points"]) for s in found if not s["decay"]] == [
        (0.015, 20, 5),
        (0.015, 500, 1),
    ]


def test_finalists_are_the_nearest_of_each_initialisation_and_of_the_first_search() -> None:
    """He's settings are all farther from the table than PyTorch's, and are finalists too."""
    grid_rows = rows_of(
        search.GRID,
        search.grid_settings(),
        lambda s: (0.2 if s["init"] == "he" else 0.0) + s["rate"],
    )
    first = rows_of(search.FIRST, search.first_settings(), lambda s: 0.5 + s["rate"])
    found = search.finalists(grid_rows + first)
    inits = [s["init"] for s in found]
    assert inits.count("torch") == search.FINALISTS
    assert inits.count("he") == search.FINALISTS + 1
    assert all(set(s) == set(search.SETTING) for s in found)
    assert found[-1]["points"] == 1
    assert found[-1]["rate"] == 0.001


def test_the_nearest_of_the_last_step_is_chosen_whatever_was_nearest_before() -> None:
    one, other = ({"init": i, "hidden": "200-100", "rate": 0.01, **BASE} for i in ("he", "torch"))
    rows = rows_of(search.GRID, [one], lambda s: 0.0) + rows_of(search.GRID, [other], lambda s: 0.2)
    seeds = (1000, 1001)
    rows += rows_of(search.LAST, [one, other], lambda s: 0.1 if s["init"] == "he" else 0.05, seeds)
    assert search.choose_setting(rows)["init"] == "torch"


def test_changes_state_everything_that_the_search_varies() -> None:
    """So that the rows do not depend on what the scenario says."""
    changes = search.setting_changes(search.first_settings()[0])
    assert changes["learner.init"] == "he"
    assert changes["learner.hidden"] == [128, 64, 32]
    assert changes["task.partition.points"] == 1
    assert changes["task.partition.per_client"] == 20
    assert changes["task.rate"] == 0.001
    scenario = load_scenario("table-awu").with_values(changes)
    assert scenario.tables["policies"]["awu"]["steps"] == 1
