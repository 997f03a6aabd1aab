"""Runs are found below folders; files of other programs are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.analysis.run_search import find_runs
from cafe.errors import FileError
from cafe.results import execute
from cafe.scenario import scenario_from_text

TEXT = """
[federation]
clients = 6
rate = 1.0
[policy]
name = "mcu"
quorum = 2
deadline = 0.7
[run]
rounds = 9
"""


def test_each_run_is_found_once_and_other_files_are_counted(tmp_path: Path) -> None:
    execute(scenario_from_text("small.toml", TEXT), "mcu", 0, tmp_path / "runs" / "mcu-seed-0")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("[]")
    found, others = find_runs([tmp_path, tmp_path / "runs"])
    assert [run.folder for run in found] == [tmp_path / "runs" / "mcu-seed-0"]
    assert others == 1


@pytest.mark.parametrize("folder", ["other", "nowhere"])
def test_a_folder_without_runs_is_an_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("[]")
    with pytest.raises(FileError, match="there are no runs in this folder"):
        find_runs([tmp_path / folder])
