"""Runs that are on disk: what is missing or damaged is named, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.results import Result, execute, execution, find, load, parquet, parquet_possible
from cafe.results.storage import read_arrays, write_arrays
from cafe.rounds import Fate

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
def test_foreign_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
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


def test_a_damaged_checkpoint_is_refused_and_can_be_done_without(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, folder = lab.scenario(), tmp_path / "run"
    execute(scenario, "agu", 0, tmp_path / "whole")
    monkeypatch.setattr(execution, "CHECKPOINT_SECONDS", 0.0)
    lab.stop_after(20, scenario, folder)
    checkpoint = folder / "checkpoint.npz"
    good = checkpoint.read_bytes()
    said = "checkpoint.npz: the file is damaged.* Remove it and resume: the run starts over"
    for bad in (b"", b"nonsense", good[: len(good) // 2], good[:-30], good[:200] + good[260:]):
        checkpoint.write_bytes(bad)
        with pytest.raises(FileError, match=said):
            load(folder)
        with pytest.raises(FileError, match=said):
            execute(scenario, "agu", 0, folder, resume=True)
    checkpoint.write_bytes(good)
    arrays = read_arrays(checkpoint, "")
    for missing in ("events", "run.books.area"):
        write_arrays(checkpoint, {k: v for k, v in arrays.items() if k != missing})
        with pytest.raises(FileError, match=r"the checkpoint has no array .* Remove it"):
            execute(scenario, "agu", 0, folder, resume=True)
    checkpoint.unlink()
    execute(scenario, "agu", 0, folder, resume=True)
    assert lab.contents(folder) == lab.contents(tmp_path / "whole")


def test_a_log_that_is_shorter_than_the_checkpoint_says_is_refused(
    lab: Lab, tmp_path: Path, run: Result
) -> None:
    log = run.folder / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-100])
    (run.folder / "result.json").unlink()
    with pytest.raises(FileError, match=r"events.jsonl: the file must have at least"):
        execute(lab.scenario(learning=True), "agu", 0, run.folder, resume=True)


def test_a_finished_run_whose_log_is_cut_is_refused(run: Result) -> None:
    log = run.folder / "events.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:30]))
    with pytest.raises(FileError, match=r"made of \(rounds 60,.* Got rounds"):
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


def test_tables_hold_the_run(run: Result) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    history = run.history
    rounds = parquet.read_table(run.folder / "rounds.parquet").to_pydict()
    assert rounds["waste"] == history.by_round["waste"].tolist()
    for fate in Fate:
        assert rounds[fate.name.lower()] == history.by_round["fates"][:, fate].tolist()
    assert history.curve is not None
    evaluated = [figure for figure in rounds["accuracy"] if figure is not None]
    assert evaluated == history.curve.accuracy.tolist()
    clients = parquet.read_table(run.folder / "clients.parquet").to_pydict()
    assert clients["client"] == list(range(20))
    assert clients["weight"] == history.weight_by_client.tolist()


def test_without_pyarrow_a_run_ends_well(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    assert not parquet_possible()
    result = execute(lab.scenario(), "agu", 0, tmp_path / "run")
    assert json.loads((result.folder / "result.json").read_text())["rounds"] == 60
    assert not list(result.folder.glob("*.parquet"))


def test_clients_from_a_file_are_not_guessed(lab: Lab, tmp_path: Path) -> None:
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


def test_a_file_that_only_looks_like_a_run_is_refused(run: Result) -> None:
    (run.folder / "run.json").write_text('{"format": 1}')
    with pytest.raises(FileError, match=r"run.json: the file must describe a run of CAFe"):
        load(run.folder)


def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"the file cannot be accessed: File name too long"):
        load(tmp_path / ("x" * 300))


def test_files_of_other_programs_are_no_runs(run: Result) -> None:
    other = run.folder / "other"
    other.mkdir()
    (other / "run.json").write_text('{"id": 1}')
    assert [found.folder for found in find(run.folder)] == [run.folder]
