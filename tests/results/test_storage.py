"""Files are complete or missing, one process works in a folder, errors have clear messages."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.results import execute, execution, load, storage

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from tests.results.conftest import Lab


def failing(function: Callable[..., Any], after: int, code: int) -> Callable[..., Any]:
    """The function; after ``after`` calls it fails as with a full disk."""
    calls = 0

    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(code, os.strerror(code))
        return function(*args, **kwargs)

    return called


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("kind", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, kind: BaseException
) -> None:
    path = tmp_path / "file"
    storage.write(path, b"old")

    def fails(*_: object) -> None:
        raise kind

    monkeypatch.setattr(os, step, fails)
    with pytest.raises((FileError, KeyboardInterrupt)):
        storage.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_the_same_arrays_are_the_same_bytes(tmp_path: Path) -> None:
    arrays = {"a": np.arange(3.0), "b": np.array("text")}
    for name in ("one.npz", "two.npz"):
        storage.write_arrays(tmp_path / name, arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    found = storage.read_arrays(tmp_path / "one.npz", "")
    assert found.keys() == arrays.keys()


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, evil=np.array([print], dtype=object))
    with pytest.raises(FileError, match=r"evil.npz: the file is damaged, or from another program"):
        storage.read_arrays(path, "")


REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission is denied",
    errno.EIO: "Input/output error",
}


@pytest.mark.parametrize("after", [0, 4, 9])
@pytest.mark.parametrize(
    ("code", "learning"), [(errno.ENOSPC, True), *((code, False) for code in REASONS)]
)
def test_failing_disk_loses_no_saved_data(
    lab: Lab,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    learning: bool,
    after: int,
) -> None:
    scenario, broken, whole = lab.scenario(learning=learning), tmp_path / "broken", tmp_path / "x"
    execute(scenario, "agu", 0, whole)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(execution, "CHECKPOINT_SHARE", 1e9)
        patch.setattr(os, "fsync", failing(os.fsync, after, code))
        with pytest.raises(
            FileError, match=f"the file cannot be written: {REASONS[code]}"
        ) as caught:
            execute(scenario, "agu", 0, broken)
    assert "What was saved before is kept." in str(caught.value)
    if after:
        assert load(broken).history.rounds == (after - 1) // 3
    execute(scenario, "agu", 0, broken, resume=True)
    assert lab.contents(broken) == lab.contents(whole)


@pytest.mark.slow
def test_log_on_a_full_disk_is_resumed(lab: Lab, tmp_path: Path) -> None:
    """The kernel limits the file size, so that writing stops in the middle of a line."""
    scenario = lab.scenario(("rounds = 60", "rounds = 400"))
    execute(scenario, "agu", 0, tmp_path / "whole")
    code = (
        "import resource, signal, sys\n"
        "from cafe.results import execute, execution\n"
        "from cafe.scenario import load_scenario\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "execution.CHECKPOINT_SECONDS = 0.0\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "execute(load_scenario('scenario.toml'), 'agu', 0, 'broken')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "FileError: broken/" in ran.stderr
    assert not (tmp_path / "broken" / "result.json").exists()
    execute(scenario, "agu", 0, tmp_path / "broken", resume=True)
    assert lab.contents(tmp_path / "broken") == lab.contents(tmp_path / "whole")


def test_file_in_place_of_the_folder_is_refused(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "run"):
        with pytest.raises(FileError, match="there is a file where a folder should be"):
            execute(lab.scenario(), "agu", 0, folder)
    assert (tmp_path / "taken").read_text() == "mine"


def test_two_processes_do_not_share_a_folder(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    code = (
        "from pathlib import Path; from cafe.results.storage import lock_folder\n"
        "with lock_folder(Path('run')): print('in', flush=True); input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(FileError, match="another process is using this folder"):
            execute(lab.scenario(), "agu", 0, folder)
        other.kill()
    assert execute(lab.scenario(), "agu", 0, folder).finished, "a lock ends with its process"
