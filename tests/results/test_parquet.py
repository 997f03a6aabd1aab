"""Parquet tables hold the run, and are optional."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cafe.results import Result, execute, parquet, parquet_possible
from cafe.rounds import Fate

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from tests.results.conftest import Lab


@pytest.fixture
def run(lab: Lab, tmp_path: Path) -> Result:
    return execute(lab.scenario(learning=True), "agu", 0, tmp_path / "run")


def test_tables_contain_the_run(run: Result) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    history = run.history
    rounds = parquet.read_table(run.folder / "rounds.parquet").to_pydict()
    assert rounds["waste"] == history.by_round["waste"].tolist()
    for fate in Fate:
        assert rounds[fate.name.lower()] == history.by_round["fates"][:, fate].tolist()
        work = history.by_round["work_by_fate"][:, fate].tolist()
        assert rounds[f"work_{fate.name.lower()}"] == work
    assert history.curve is not None
    evaluated = [figure for figure in rounds["accuracy"] if figure is not None]
    assert evaluated == history.curve.accuracy.tolist()
    clients = parquet.read_table(run.folder / "clients.parquet").to_pydict()
    assert clients["client"] == list(range(20))
    assert clients["weight"] == history.weight_by_client.tolist()
    assert history.accuracy_by_client is not None
    assert clients["accuracy"] == history.accuracy_by_client.tolist()


def test_run_finishes_without_pyarrow(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    assert not parquet_possible()
    result = execute(lab.scenario(), "agu", 0, tmp_path / "run")
    assert json.loads((result.folder / "result.json").read_text())["rounds"] == 60
    assert not list(result.folder.glob("*.parquet"))


def test_missing_tables_are_rewritten(lab: Lab, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    scenario, folder = lab.scenario(learning=True), tmp_path / "run"
    execute(scenario, "agu", 0, folder)
    before = lab.contents(folder)
    (folder / "rounds.parquet").unlink()
    execute(scenario, "agu", 0, folder, resume=True)
    assert lab.contents(folder) == before
