"""What ``live.json`` says about a run, and whether its server is still running."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.lab.live_status import find_killed_run, read_live
from tests.support.flower.live_files import LIVE


def write(folder: Path, **changed: object) -> None:
    (folder / "live.json").write_text(json.dumps(LIVE | changed))


@pytest.fixture
def ended() -> int:
    """The pid of a process that has ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_live_file_of_another_run_is_ignored(tmp_path: Path) -> None:
    assert read_live(tmp_path) is None
    write(tmp_path, run="7")
    assert read_live(tmp_path) == read_live(tmp_path, "7") == LIVE | {"run": "7"}
    assert read_live(tmp_path, "8") is None
    (tmp_path / "live.json").write_text("[1]")
    assert read_live(tmp_path) is None


def test_run_whose_server_was_killed_is_found(tmp_path: Path, ended: int) -> None:
    assert find_killed_run(tmp_path) is None
    write(tmp_path, run="7", state="open", pid=ended)
    assert find_killed_run(tmp_path) == "7"


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_run_that_has_ended_was_not_killed(tmp_path: Path, ended: int, state: str) -> None:
    write(tmp_path, state=state, pid=ended)
    assert find_killed_run(tmp_path) is None


def test_run_whose_server_is_alive_was_not_killed(tmp_path: Path) -> None:
    write(tmp_path, state="open", pid=os.getpid())
    assert find_killed_run(tmp_path) is None
