"""Runs are loaded as they were written; damaged files are errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cafe.analysis.run_groups import group_runs
from cafe.errors import FileError
from cafe.report import comparison_cells
from cafe.results import Result, execute, find, load, summary
from cafe.results.storage import write_arrays

if TYPE_CHECKING:
    from tests.results.conftest import Lab


@pytest.fixture
def run(lab: Lab, tmp_path: Path) -> Result:
    return execute(lab.scenario(learning=True), "agu", 0, tmp_path / "run")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no run in this folder"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "run.json: the file must describe a run of CAFe"),
        ("[]", "run.json: the file must describe a run of CAFe"),
        ("{}", "run.json: the file must describe a run of CAFe"),
        ('{"format": 99, "version": "9.9"}', r"format 1. Got 99: it was written by CAFe 9.9"),
    ],
)
def test_files_of_other_formats_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(FileError, match=said):
        load(tmp_path)


@pytest.mark.parametrize("name", ["clients.npz", "model.npz"])
def test_a_damaged_array_can_be_written_again(
    lab: Lab, tmp_path: Path, run: Result, name: str
) -> None:
    before = lab.contents(run.folder)
    (run.folder / name).write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(FileError, match=rf"{name}: the file is damaged.* Remove result.json"):
        load(run.folder)
    write_arrays(run.folder / name, {"x": np.zeros(1)})
    with pytest.raises(FileError, match=r"the array .* is missing. Remove result.json"):
        load(run.folder)
    (run.folder / "result.json").unlink()
    execute(lab.scenario(learning=True), "agu", 0, run.folder, resume=True)
    assert lab.contents(run.folder) == before


def test_a_finished_run_whose_log_is_cut_is_refused(run: Result) -> None:
    log = run.folder / "events.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:30]))
    with pytest.raises(FileError, match=r"made from \(rounds 60,.* Got rounds"):
        load(run.folder)
    log.write_bytes(b"".join(whole[:-1]))
    assert b"accuracy" in whole[-1]
    with pytest.raises(FileError, match=r"part of it is lost"):
        load(run.folder)
    log.write_bytes(b"".join(whole))
    assert load(run.folder).history.accuracy == run.history.accuracy
    (run.folder / "result.json").write_text("{}")
    with pytest.raises(FileError, match=r"result.json: the file must contain the figures of a run"):
        load(run.folder)


def test_clients_from_a_file_are_unknown_after_loading(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "clients.csv").write_text("rate\n" + "1.0\n2.0\n" * 10)
    scenario = lab.scenario(
        ("clients = 20", 'file = "clients.csv"'), ("rate = 1.0\n", ""), ("availability = 0.9\n", "")
    )
    result = execute(scenario, "agu", 0, tmp_path / "run")
    assert result.federation is None
    assert "clients.csv" in result.provenance["settings"]["files"]
    (tmp_path / "clients.csv").write_text("rate\n" + "1.0\n3.0\n" * 10)
    with pytest.raises(FileError, match=r"files.clients.csv was .* and is"):
        execute(scenario, "agu", 0, tmp_path / "run", resume=True)


def test_incomplete_run_file_is_refused(run: Result) -> None:
    (run.folder / "run.json").write_text('{"format": 1}')
    with pytest.raises(FileError, match=r"run.json: the file must describe a run of CAFe"):
        load(run.folder)


def test_impossible_folder_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"the file cannot be accessed: File name too long"):
        load(tmp_path / ("x" * 300))


def test_run_files_of_other_programs_are_ignored(run: Result) -> None:
    other = run.folder / "other"
    other.mkdir()
    (other / "run.json").write_text('{"id": 1}')
    assert [found.folder for found in find(run.folder)] == [run.folder]


def test_all_runs_below_a_folder_are_found(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario()
    for seed in (0, 1):
        execute(scenario, "agu", seed, tmp_path / "out" / f"agu-seed-{seed}")
    assert [result.history.seed for result in find(tmp_path / "out")] == [0, 1]
    with pytest.raises(FileError, match="there are no runs"):
        find(tmp_path / "nowhere")


def test_results_of_earlier_versions_are_compared_without_what_they_lack(
    lab: Lab, tmp_path: Path
) -> None:
    """They have neither client time by fate nor the accuracy for each client."""
    folder = tmp_path / "run"
    new = execute(lab.scenario(learning=True), "agu", 0, folder)
    log = folder / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.pop("work_by_fate", None)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    arrays = dict(np.load(folder / "clients.npz"))
    del arrays["accuracy"]
    np.savez(folder / "clients.npz", **arrays)
    old = load(folder)
    assert new.history.accuracy_by_client is not None
    assert old.history.accuracy_by_client is None
    assert np.isnan(old.history.by_round["work_by_fate"]).all()
    for name in ("waste", "work", "fates"):
        np.testing.assert_array_equal(old.history.by_round[name], new.history.by_round[name])
    found = summary(old.history)
    assert {*found["work_by_fate"].values()} == {None}
    groups = group_runs([old])
    assert comparison_cells.work_shares(groups) is None
    cells = comparison_cells.fair(groups)
    assert cells is not None
    assert "worst accuracy" not in cells.columns
