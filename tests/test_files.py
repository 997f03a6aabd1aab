"""Files are written completely or not at all, and every error is a clear message."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.files import writing


def fail(path: Path, error: BaseException) -> None:
    with writing(path) as file:
        file.write("half a page" * 10_000)
        raise error


@pytest.mark.parametrize("there", [True, False])
def test_full_disk_keeps_the_old_file(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "page.html"
    if there:
        path.write_text("the old page")
    with pytest.raises(FileError, match=r"page\.html: the file cannot be written: No space left"):
        fail(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with pytest.raises(KeyboardInterrupt):
        fail(path, KeyboardInterrupt())
    assert [*tmp_path.iterdir()] == ([path] if there else [])
    assert not there or path.read_text() == "the old page"


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path, link = tmp_path / "page.html", tmp_path / "link.html"
    with writing(path) as file:
        file.write("one\r\n")
        file.flush()
        assert not path.exists()
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert path.read_bytes() == b"one\r\n"
    path.chmod(0o600)
    link.symlink_to(path.name)
    with writing(link) as file:
        file.write("two")
    assert link.is_symlink()
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "what was private stays so"
    assert {*tmp_path.iterdir()} == {path, link, plain}


def test_pipe_can_be_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    with writing(pipe) as file:
        file.write("through")
    reader.join(timeout=60)
    assert read == ["through"]
    assert pipe.is_fifo()


def test_unwritable_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="it is a folder"), writing(tmp_path):
        pass
    with pytest.raises(FileError, match="no such file or folder"), writing(tmp_path / "a" / "b"):
        pass
    locked = tmp_path / "locked"
    locked.touch(0o400)
    if not os.access(locked, os.W_OK):  # root may write to any file
        with pytest.raises(FileError, match="permission is denied"), writing(locked):
            pass
