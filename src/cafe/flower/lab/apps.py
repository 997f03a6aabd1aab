"""A ready Flower app to begin with."""

from __future__ import annotations

import shutil
from pathlib import Path

from cafe.errors import FileError
from cafe.files import reason

TEMPLATE = Path(__file__).parent / "template"


def write_app(folder: Path) -> None:
    """Write the app into a folder that is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(folder, "the app needs a new or an empty folder: nothing is overwritten.")
    try:
        shutil.copytree(
            TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
        # Under its own name it would hide files of the template from those who package it.
        (folder / "gitignore").rename(folder / ".gitignore")
    except OSError as error:
        raise FileError(folder, f"the app cannot be written: {reason(error)}.") from None
