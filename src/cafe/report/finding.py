"""The runs below folders, among whatever else lies there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cafe.errors import FileError
from cafe.files import read_text
from cafe.report.words import counted
from cafe.results import Result, events, load, provenance


def find(folders: Sequence[Path]) -> tuple[list[Result], int]:
    """Every run below the folders once, and how many others there are that only have the name.

    A run that is damaged is refused: a page without it would look complete.
    """
    found: dict[Path, Result] = {}
    strange: set[Path] = set()
    for folder in folders:
        below = sorted(path.parent for path in folder.rglob(provenance.NAME))
        own = [run for run in below if _is_run(run)]
        strange |= {run.resolve() for run in below} - {run.resolve() for run in own}
        if not own:
            raise FileError(
                folder,
                "there are no runs in this folder"
                + (f", only {skipped(len(below))}" if below else "")
                + ": name the output of a simulation.",
            )
        found |= {run.resolve(): load(run) for run in own if run.resolve() not in found}
    return [*found.values()], len(strange)


def skipped(number: int) -> str:
    """What is not read, in words."""
    return f"{counted(number, provenance.NAME + ' file')} of another program"


def _is_run(folder: Path) -> bool:
    """Whether a run of CAFe was begun here; other programs have files of that name too."""
    try:
        begun = json.loads(read_text(folder / provenance.NAME))
    except (ValueError, RecursionError):  # damaged or no JSON at all; a FileError is one too
        return (folder / events.NAME).exists()
    return isinstance(begun, dict) and isinstance(begun.get("format"), int)
