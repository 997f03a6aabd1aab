"""Opening files, with every refusal in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cafe.errors import FileError


def read_text(path: str | Path) -> str:
    """The file's text, without the mark that some editors put in front."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {reason(error)}.") from None
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
    """A new text file, its lines ended as they are written."""
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise FileError(path, f"the file cannot be written: {reason(error)}.") from None


def reason(error: OSError) -> str:
    """Why, and what to do."""
    reasons = {
        FileNotFoundError: "there is no such file or folder; check the path",
        IsADirectoryError: "it is a folder; name a file in it",
        PermissionError: "permission is denied; change its mode, or copy it",
    }
    return reasons.get(type(error), f"{error.strerror}")
