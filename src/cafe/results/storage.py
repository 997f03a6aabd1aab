"""Writing so that nothing is lost: whole files or none, and one process at a time."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cafe.errors import FileError
from cafe.files import atomic_replacement, explain_os_error

LOCK = ".lock"
_PENDING = 1 << 20  # bytes that wait at most to be written

_REASONS = {
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "the quota is used up; make room",
    errno.EROFS: "the disk can only be read; choose another folder",
    errno.ENOTDIR: "there is a file where a folder should be; choose another folder",
    errno.EEXIST: "there is a file where a folder should be; choose another folder",
}


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Say in a sentence why something cannot be written."""
    try:
        yield
    except OSError as error:
        why = _REASONS.get(error.errno or 0) or explain_os_error(error)
        raise FileError(path, f"this cannot be written: {why}. What was saved is kept.") from None


def make_folder(folder: Path) -> None:
    """The folder, and those that it lies in."""
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write(path: Path, data: bytes) -> None:
    """The file as a whole, as :func:`cafe.files.complete` says."""
    with explain_write_errors(path):
        with atomic_replacement(path) as new:
            new.write_bytes(data)
        _sync_folder(path.parent)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """An ``.npz`` file. The same arrays give the same bytes: it has no dates."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write(path, buffer.getvalue())


def read_arrays(path: Path, remedy: str) -> dict[str, NDArray[Any]]:
    """What :func:`write_arrays` wrote; nothing in a file is ever run as code."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return dict(arrays.items())
    except Exception as error:  # a damaged archive fails in many ways
        raise FileError(
            path,
            f"the file is damaged, or not one of CAFe's ({error}). {remedy}",
        ) from None


def _sync_folder(folder: Path) -> None:
    """A new name is on the disk only when its folder is; other systems cannot open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class AppendOnlyFile:
    """A file that only grows, open at its end; ``keep`` bytes of what was there before stay.

    What is added is handed to the system by :meth:`flush`, and is safe after :meth:`sync`.
    """

    def __init__(self, path: Path, keep: int = 0) -> None:
        self._path, self._pending = path, bytearray()
        with explain_write_errors(path):
            # Opened for appending: what another process has written is never overwritten.
            self._file = path.open("ab", buffering=0)
            self._file.truncate(keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What an interrupt has left half done is not tried again: it could be written twice.
        if kind is not None and issubclass(kind, Exception):
            with contextlib.suppress(FileError):
                self.flush()
        self._file.close()

    def add(self, text: str) -> None:
        """Put a line at the end."""
        self._pending += text.encode() + b"\n"
        if len(self._pending) > _PENDING:
            self.flush()

    def flush(self) -> None:
        """Let others see what there is."""
        with explain_write_errors(self._path):
            while self._pending:
                written = self._file.write(self._pending)
                del self._pending[:written]

    def sync(self) -> int:
        """Have it all on the disk; how many bytes there are."""
        self.flush()
        with explain_write_errors(self._path):
            os.fsync(self._file.fileno())
            return os.fstat(self._file.fileno()).st_size


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder; the lock ends with the process, however that ends."""
    with explain_write_errors(folder / LOCK):
        file = (folder / LOCK).open("ab")
    with file:
        _lock(file.fileno(), folder)
        yield


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has other locks, and few who share a folder
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(
            folder,
            "another process is at work in this folder. Wait until it has ended, or choose another "
            "folder.",
        ) from None
    except OSError:  # a file system that has no locks
        return
