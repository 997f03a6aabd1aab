"""The terminal: what verbs print, how they show progress, what they refuse before they work."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cafe.errors import FileError

if TYPE_CHECKING:
    from cafe.planner.search import Progress


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar on the terminal for what takes more than a second; nothing in a pipe."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    began, task = time.monotonic(), None
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:

        def show(share: float) -> None:
            nonlocal task
            if task is None and time.monotonic() - began > 1.0:
                task = bar.add_task(label, total=1.0)
            if task is not None:
                bar.update(task, completed=share)

        yield show


def print_shown(shown: Any) -> None:
    """Print text or a table for people."""
    from rich.console import Console

    # In a pipe there is no width to respect: a table must not be folded at 80 columns.
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 140)
    console.print(shown)


def print_json(value: Any) -> None:
    """Print JSON for programs."""
    typer.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Values as JSON has them: what is not finite is null, since JSON has no word for it."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def check_pictures(*paths: Path | None, folder: bool = True) -> None:
    """Refuse what could not be drawn or written in the end before any work is done."""
    for path in paths:
        if path:
            from cafe.report import plots

            plots.check(path if path.suffix != ".html" else path.with_suffix(".svg"))
            if folder:
                check_folder(path)


def check_folder(path: Path | None) -> None:
    """Refuse a file whose folder is not there."""
    if path and not path.parent.is_dir():
        raise FileError(path, f"the file cannot be written: there is no folder {path.parent}.")


def say_written(*paths: Path | None) -> None:
    """Name the files that were written, beside the output that programs read."""
    for path in paths:
        if path:
            typer.echo(f"Wrote {path}", err=True)
