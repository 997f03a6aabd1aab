"""Damaged checkpoints are errors, and a run can start over without them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cafe.errors import FileError
from cafe.results import Result, execute, execution, load
from cafe.results.storage import read_arrays, write_arrays

if TYPE_CHECKING:
    from tests.results.conftest import Lab


@pytest.fixture
def run(lab: Lab, tmp_path: Path) -> Result:
    return execute(lab.scenario(learning=True), "agu", 0, tmp_path / "run")


def test_damaged_checkpoint_is_refused_and_can_be_deleted(
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


def test_log_shorter_than_the_checkpoint_expects_is_refused(
    lab: Lab, tmp_path: Path, run: Result
) -> None:
    log = run.folder / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-100])
    (run.folder / "result.json").unlink()
    with pytest.raises(FileError, match=r"events.jsonl: the file must have at least"):
        execute(lab.scenario(learning=True), "agu", 0, run.folder, resume=True)
