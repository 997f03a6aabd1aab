"""Opening files, with every refusal in a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copymode
from typing import TextIO

from cafe.errors import FileError


def read_text(path: str | Path) -> str:
    """The file's text, without the mark that some editors put in front."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
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
    """A new text file, its lines ended as they are written; what was there stays until it is whole.

    A FileError says why it cannot be written.
    """
    with (
        replacing(path) as new,
        new.open("w", encoding="utf-8", newline="") as file,
    ):
        yield file


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path to write to, whose file takes the place of another when it is whole, or never.

    What is no common file, such as a pipe, is written to as it is.
    """
    try:
        target = Path(path).resolve()  # a link stays one
        if _is_written_in_place(Path(path), target.parent):
            yield Path(path)
            return
        with atomic_replacement(target) as new:
            yield new
            if target.exists():
                copymode(target, new)
    except OSError as error:
        raise FileError(path, f"the file cannot be written: {explain_os_error(error)}.") from None


@contextmanager
def atomic_replacement(target: Path) -> Iterator[Path]:
    """A path to write to, whose file becomes ``target`` when all is on the disk, or never.

    Whoever reads the target sees the old file or the new one, after a crash too.
    """
    new = target.with_name(f".{target.name}.new")
    try:
        yield new
        with new.open("rb+") as file:
            os.fsync(file.fileno())  # some disks say only then that they are full
        os.replace(new, target)
    finally:
        with suppress(OSError):
            new.unlink()


def _is_written_in_place(path: Path, folder: Path) -> bool:
    """Whether nothing can take a file's place, or nothing should.

    Standard output may be a common file, whose place others count on; and where a file cannot be
    replaced, or must not be written, opening it is what says so.
    """
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        return True
    return path.absolute().is_relative_to("/dev") or not os.access(folder, os.W_OK)


def explain_os_error(error: OSError) -> str:
    """Why, and what to do."""
    reasons = {
        FileNotFoundError: "there is no such file or folder; check the path",
        IsADirectoryError: "it is a folder; name a file in it",
        PermissionError: "permission is denied; change its mode, or copy it",
    }
    return reasons.get(type(error), f"{error.strerror}")
