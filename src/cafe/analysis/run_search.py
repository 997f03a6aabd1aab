"""The runs below folders, among whatever else lies there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cafe.results import Result, load, provenance
from cafe.results.loading import runs_below
from cafe.wording import counted


def find(folders: Sequence[Path]) -> tuple[list[Result], int]:
    """Every run below the folders once, and how many others there are that only have the name.

    A run that is damaged is refused: a page without it would look complete.
    """
    found: dict[Path, Result] = {}
    strange: set[Path] = set()
    for folder in folders:
        runs, others = runs_below(folder)
        strange |= {other.resolve() for other in others}
        found |= {run.resolve(): load(run) for run in runs if run.resolve() not in found}
    return [*found.values()], len(strange)


def skipped(number: int) -> str:
    """What is not read, in words."""
    return f"{counted(number, provenance.NAME + ' file')} of another program"
