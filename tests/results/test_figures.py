"""The summary has every figure, as valid JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cafe.results import execute
from cafe.rounds import History

if TYPE_CHECKING:
    from tests.results.conftest import Lab


def test_summary_contains_every_figure(lab: Lab, tmp_path: Path) -> None:
    result = execute(lab.scenario(learning=True), "agu", 0, tmp_path / "run")
    found = json.loads((tmp_path / "run" / "result.json").read_text())
    figures = {name for name, value in vars(History).items() if isinstance(value, property)}
    assert figures <= found.keys()
    assert found["waste_per_gradient"] == result.history.waste_per_gradient
    assert sum(found["fates"].values()) + found["open_jobs"] == found["jobs"]


def test_a_summary_without_updates_is_valid_json(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(("quorum = 9", "quorum = 20"))
    execute(scenario, "agu", 0, tmp_path / "run")
    found = json.loads((tmp_path / "run" / "result.json").read_text())
    assert found["updates"] == 0
    assert found["waste_per_update"] is None
