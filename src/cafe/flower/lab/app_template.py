"""A ready Flower app to begin with."""

from __future__ import annotations

import shutil
from pathlib import Path

from cafe.errors import FileError
from cafe.files import explain_os_error

TEMPLATE = Path(__file__).parent / "template"
IN_TORCH = Path(__file__).parent / "template_torch"  # the files of it that differ in PyTorch


def write_app(folder: Path, torch: bool = False) -> None:
    """Write the app, in NumPy or in PyTorch, into a folder that is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(folder, "the app needs a new or an empty folder: nothing is overwritten.")
    unwanted = shutil.ignore_patterns("__pycache__")
    try:
        for source in (TEMPLATE, IN_TORCH) if torch else (TEMPLATE,):
            shutil.copytree(source, folder, ignore=unwanted, dirs_exist_ok=True)
        # Under its own name it would hide files of the template from those who package it.
        (folder / "gitignore").rename(folder / ".gitignore")
    except OSError as error:
        raise FileError(folder, f"the app cannot be written: {explain_os_error(error)}.") from None
