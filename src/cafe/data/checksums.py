"""SHA-256 sums of data, so that a run is not resumed with other examples."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cafe.data.image_folder import image_files
from cafe.errors import FileError
from cafe.files import explain_os_error


def folder_sum(path: Path) -> str:
    """The SHA-256 of the names and contents of all images in a folder."""
    whole = hashlib.sha256()
    for part in image_files(path).values():
        for images in part.values():
            for image in images:
                name = image.relative_to(path).as_posix()
                whole.update(f"{name}\0{file_sum(image)}\n".encode())
    return whole.hexdigest()


def file_sum(path: Path) -> str:
    """The SHA-256 of the content of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
