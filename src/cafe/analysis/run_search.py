"""Runs found on disk, in folders that may hold other files too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cafe.results import Result, load
from cafe.results.loading import runs_below


def find_runs(folders: Sequence[Path]) -> tuple[list[Result], int]:
    """Each run below the folders once, and the number of ``run.json`` files of other programs.

    A damaged run raises an error: a report without it would look complete.
    """
    found: dict[Path, Result] = {}
    foreign: set[Path] = set()
    for folder in folders:
        runs, others = runs_below(folder)
        foreign |= {other.resolve() for other in others}
        found |= {run.resolve(): load(run) for run in runs if run.resolve() not in found}
    return [*found.values()], len(foreign)
