"""Safe writing: complete files or none, append-only files, and one process per folder."""

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
_PENDING = 1 << 20  # maximum number of bytes kept in memory before they are written

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the disk is read-only; choose another folder",
    errno.ENOTDIR: "there is a file where a folder should be; choose another folder",
    errno.EEXIST: "there is a file where a folder should be; choose another folder",
}


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a FileError that explains why a file cannot be written."""
    try:
        yield
    except OSError as error:
        why = _REASONS.get(error.errno or 0) or explain_os_error(error)
        raise FileError(
            path, f"the file cannot be written: {why}. What was saved before is kept."
        ) from None


def make_folder(folder: Path) -> None:
    """Create a folder and its parents."""
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write(path: Path, data: bytes) -> None:
    """Write a file completely or not at all, and sync it to disk."""
    with explain_write_errors(path):
        with atomic_replacement(path) as new:
            new.write_bytes(data)
        sync_folder(path.parent)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an ``.npz`` file without dates: the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write(path, buffer.getvalue())


def read_arrays(path: Path, remedy: str) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` file; pickled objects are rejected, so no code in it can run."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return dict(arrays.items())
    except Exception as error:  # a damaged archive raises many kinds of errors
        raise FileError(
            path,
            f"the file is damaged, or from another program ({error}). {remedy}",
        ) from None


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that new file names in it are on disk; POSIX only."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class AppendOnlyFile:
    """A file open for appending, after it was cut to its first ``keep`` bytes.

    Lines are passed to the system by :meth:`flush`, and are on disk after :meth:`sync`.
    """

    def __init__(self, path: Path, keep: int = 0) -> None:
        self._path, self._pending = path, bytearray()
        with explain_write_errors(path):
            # Append mode: bytes that another process has written are never overwritten.
            self._file = path.open("ab", buffering=0)
            self._file.truncate(keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an interrupt nothing is flushed: a line could be written twice.
        if kind is not None and issubclass(kind, Exception):
            with contextlib.suppress(FileError):
                self.flush()
        self._file.close()

    def add(self, text: str) -> None:
        """Append a line."""
        self._pending += text.encode() + b"\n"
        if len(self._pending) > _PENDING:
            self.flush()

    def flush(self) -> None:
        """Pass all lines to the system, so that other processes see them."""
        with explain_write_errors(self._path):
            while self._pending:
                written = self._file.write(self._pending)
                del self._pending[:written]

    def clear(self) -> None:
        """Delete all lines."""
        self._pending.clear()
        with explain_write_errors(self._path):
            self._file.truncate(0)

    def sync(self) -> int:
        """Write all lines to disk, and return the length of the file in bytes."""
        self.flush()
        with explain_write_errors(self._path):
            os.fsync(self._file.fileno())
            return os.fstat(self._file.fileno()).st_size


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the system releases the lock when the process ends."""
    with explain_write_errors(folder / LOCK):
        file = (folder / LOCK).open("ab")
    with file:
        _lock(file.fileno(), folder)
        yield


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(
            folder,
            "another process is using this folder. Wait until it has ended, or choose another "
            "folder.",
        ) from None
    except OSError:  # a file system without locks
        return
