"""Read and write files, with error messages that say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copymode
from typing import TextIO

from cafe.errors import FileError, check_path


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    Raises:
        FileError: if the file cannot be read.
    """
    return decode_text(path, read_bytes(path))


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file.

    Raises:
        FileError: if the file cannot be read.
    """
    try:
        return check_path("path", path).read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None


def decode_text(path: str | Path, data: bytes) -> str:
    """The text in UTF-8 data, without a byte order mark; ``path`` is for error messages.

    Raises:
        FileError: if the data is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            path,
            "the file must be text in UTF-8. "
            f"Got the byte 0x{data[error.start]:02x}: save it as UTF-8.",
            data.count(b"\n", 0, error.start) + 1,
        ) from None


@contextmanager
def writing(path: str | Path) -> Iterator[TextIO]:
    """Open a text file for writing. An existing file stays until the new one is complete.

    Line ends are written as given.

    Raises:
        FileError: if the file cannot be written.
    """
    with (
        replacing(path) as new,
        new.open("w", encoding="utf-8", newline="") as file,
    ):
        yield file


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, whose file replaces ``path`` when it is complete.

    If the block raises, ``path`` stays as it was. Something that is not a regular file, such as a
    pipe, is written to directly.

    Raises:
        FileError: if the file cannot be written.
    """
    try:
        path = check_path("path", path)
        target = path.resolve()  # so that a symbolic link is kept
        if _is_written_in_place(path, target.parent):
            yield path
            return
        with atomic_replacement(target) as new:
            yield new
            if target.exists():
                copymode(target, new)
    except OSError as error:
        raise FileError(path, f"the file cannot be written: {explain_os_error(error)}.") from None


@contextmanager
def atomic_replacement(target: Path) -> Iterator[Path]:
    """A temporary path to write to, whose file replaces ``target`` once it is on the disk.

    A reader of the target sees either the old file or the new one, even after a crash.
    """
    new = target.with_name(f".{target.name}.new")
    try:
        yield new
        with new.open("rb+") as file:
            os.fsync(file.fileno())  # some file systems report a full disk only here
        os.replace(new, target)
    finally:
        with suppress(OSError):
            new.unlink()


def _is_written_in_place(path: Path, folder: Path) -> bool:
    """Whether a file must be written directly instead of being replaced.

    Standard output may be a regular file that others keep open. And if a file may not be written
    or replaced, opening it directly gives the right error.
    """
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        return True
    return path.absolute().is_relative_to("/dev") or not os.access(folder, os.W_OK)


def explain_os_error(error: OSError) -> str:
    """The reason of an OSError, and what to do."""
    reasons = {
        FileNotFoundError: "there is no such file or folder; check the path",
        IsADirectoryError: "it is a folder; name a file in it",
        PermissionError: "permission is denied; change its mode, or copy it",
    }
    return reasons.get(type(error), f"{error.strerror}")
