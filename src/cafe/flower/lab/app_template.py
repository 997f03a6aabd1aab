"""The Flower app that ``cafe federate init`` writes."""

from __future__ import annotations

import shutil
from pathlib import Path

from cafe.errors import FileError
from cafe.files import explain_os_error

TEMPLATE = Path(__file__).parent / "template"
IN_TORCH = Path(__file__).parent / "template_torch"  # the files that differ for PyTorch


def write_app(folder: Path, torch: bool = False) -> None:
    """Write the app, for NumPy or PyTorch, into a new or empty folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(folder, "the app needs a new or empty folder: nothing is overwritten.")
    unwanted = shutil.ignore_patterns("__pycache__")
    try:
        for source in (TEMPLATE, IN_TORCH) if torch else (TEMPLATE,):
            shutil.copytree(source, folder, ignore=unwanted, dirs_exist_ok=True)
        # Under its real name it would exclude files of the template from the package.
        (folder / "gitignore").rename(folder / ".gitignore")
    except OSError as error:
        raise FileError(folder, f"the app cannot be written: {explain_os_error(error)}.") from None
