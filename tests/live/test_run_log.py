"""Lost files and a full disk: a clear error message, and the run can be resumed."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from cafe.errors import FileError
from cafe.live.run_log import JOBS, RESPONSES
from cafe.live.server import serve
from cafe.results import checkpoint, load, storage
from cafe.results.events import NAME as EVENTS
from tests.support.serving import assert_sound, config, read_status, stopped_after, wire
from tests.support.virtual_runs import VirtualWire


def test_truncated_files_are_not_resumed(tmp_path: Path) -> None:
    for name in (EVENTS, JOBS, RESPONSES):
        folder = tmp_path / name
        at = wire()
        stopped_after(3, folder, at, config())
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-9])
        with pytest.raises(FileError, match="part of it is lost"):
            serve(at, config(), folder)
        assert (folder / name).read_bytes() == whole[:-9]
        (folder / name).unlink()
        with pytest.raises(FileError):
            serve(at, config(), folder)
        (folder / name).write_bytes(whole)
        serve(at, config(), folder)
        assert_sound(folder)


def test_status_file_says_why_a_run_ended(tmp_path: Path) -> None:
    at = wire()

    def send(orders: Any, model: Any) -> Any:
        raise ConnectionError("the line is dead")

    at.send = send  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        serve(at, config(), tmp_path)
    state = read_status(tmp_path)
    assert state["state"] == "stopped"
    assert "the line is dead" in state["why"]


class Full:
    """A disk that is full from the n-th call of fsync or replace on."""

    def __init__(self, patch: pytest.MonkeyPatch, after: int) -> None:
        self.left, self.calls = after, 0
        for name in ("fsync", "replace"):
            patch.setattr(os, name, self.failing(getattr(os, name)))

    def failing(self, original: Any) -> Any:
        def call(*args: Any) -> Any:
            self.calls += 1
            if self.left == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left -= 1
            return original(*args)

        return call


def complaint(at: VirtualWire, folder: Path, said: list[str]) -> str:
    """Why a run cannot be served, if it cannot."""
    try:
        serve(at, config(rounds=3), folder, say=said.append)
    except FileError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_full_disk_at_any_step_loses_no_saved_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any step: an error message, saved data are kept, and the run can be resumed."""
    for after in itertools.count(0, 2):
        folder, at, said = tmp_path / f"{after}", wire(seed=1), list[str]()
        with monkeypatch.context() as patch:
            disk = Full(patch, after)
            trouble = complaint(at, folder, said)
        if trouble:
            assert "the disk is full; free some space. What was saved before is kept." in trouble
            assert not said or said[-1] == f"Stopped: {trouble}"
        else:  # there was space for everything but live.json
            assert load(folder).finished
            if disk.left:
                assert after > 30
                return
        told = [s for s in said if s.startswith("Round ")]
        if told:
            assert load(folder).history.rounds >= len(told)
        assert serve(at, config(rounds=3), folder).rounds == 3
        assert_sound(folder)


def test_status_file_reports_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``live.json`` can still be replaced: here only writing a checkpoint fails."""
    original = storage.write_arrays
    writes = 0

    def write_arrays(*args: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise FileError(
                args[0], "the file cannot be written: the disk is full; free some space."
            )
        original(*args)

    monkeypatch.setattr(checkpoint, "write_arrays", write_arrays)
    at = wire()
    with pytest.raises(FileError):
        serve(at, config(), tmp_path)
    assert read_status(tmp_path)["state"] == "stopped"
    assert "the disk is full" in read_status(tmp_path)["why"]
    assert load(tmp_path).history.rounds == 2
    serve(at, config(), tmp_path)
    assert_sound(tmp_path)
