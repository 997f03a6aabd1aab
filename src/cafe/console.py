"""The terminal: output, progress, and checks of output files before any work is done."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import typer

from cafe.errors import FileError

if TYPE_CHECKING:
    from cafe.progress import ProgressCallback

Show = Callable[[float, int, str], None]  # share done, number done, and further text
LINES_APART = 10.0  # seconds between two lines of progress if stderr is not a terminal


@contextmanager
def progress_bar(label: str) -> Iterator[ProgressCallback]:
    """A progress bar for work of more than a second; nothing if stderr is not a terminal."""
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


@contextmanager
def progress_line(label: str, noun: str) -> Iterator[Show]:
    """Progress of long work: a bar on a terminal, else a line every ten seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from cafe.wording import format_number

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    apart = 0.1 if console.is_terminal else LINES_APART
    first: tuple[float, float, int] | None = None
    said = time.monotonic()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=1.0)

        def show(share: float, done: int, more: str) -> None:
            nonlocal first, said
            now = time.monotonic()
            first = first or (now, share, done)
            if now - said < apart:
                return
            said, (began, ahead, before) = now, first
            speed = (done - before) / max(now - began, 1e-9)
            text = f"{label}: {done:,} {noun}{more}, {format_number(speed)}/s"
            bar.update(task, completed=share, description=text)
            if not console.is_terminal and share > ahead:
                left = (now - began) * (1 - share) / (share - ahead)
                say(f"{text}, {share:.0%}, about {left:,.0f} s left")

        yield show


@contextmanager
def waiting(sentence: str) -> Iterator[None]:
    """Print a sentence, then the elapsed time: a bar on a terminal, else lines."""
    from rich.console import Console
    from rich.progress import BarColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    say(sentence)
    console, began, over = Console(stderr=True), time.monotonic(), Event()
    if console.is_terminal:
        with Bar(BarColumn(), TimeElapsedColumn(), console=console, transient=True) as bar:
            bar.add_task("", total=None)
            yield
        return

    def report_elapsed() -> None:
        while not over.wait(LINES_APART):
            say(f"... {time.monotonic() - began:,.0f} s elapsed")

    reporter = Thread(target=report_elapsed, name="cafe-waiting", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


@contextmanager
def resumable() -> Iterator[None]:
    """On Ctrl-C, print the command that resumes the runs, and exit with code 130."""
    try:
        yield
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
        say(f"Stopped. Resume with: cafe {shlex.join(words)} --resume")
        raise typer.Exit(130) from None


def print_output(output: Any) -> None:
    """Print text or a rich table to stdout."""
    from rich.console import Console

    # A pipe has no width of its own: do not fold tables at 80 columns unless COLUMNS says so.
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    console = Console(highlight=False, markup=False, width=None if known else 140)
    console.print(output)


def print_json(value: Any) -> None:
    """Print a value as JSON to stdout."""
    typer.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Values that JSON has: NaN and infinity become null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def check_pictures(*paths: Path | None, folder: bool = True) -> None:
    """Raise an error if a picture cannot be drawn in this format or its folder does not exist."""
    for path in paths:
        if path:
            from cafe.report.plotting import check_format

            check_format(path)
            if folder:
                check_folder(path)


def check_page(path: Path | None) -> None:
    """Raise an error if a page has the wrong ending or its folder does not exist."""
    if path:
        if path.suffix.lower() not in (".html", ".htm"):
            raise FileError(
                path,
                "a page's name must end in .html or .htm, so that browsers open it. "
                f"Got '{path.name}': choose another name.",
            )
        check_pictures(path.with_suffix(".svg"), folder=False)  # pages have pictures in them
        check_folder(path)


def check_folder(path: Path | None) -> None:
    """Raise an error if the folder of a file does not exist."""
    if path and not path.parent.is_dir():
        raise FileError(path, f"the file cannot be written: there is no folder {path.parent}.")


def say(sentence: str) -> None:
    """Print a sentence to stderr, so that stdout has only the results."""
    typer.echo(sentence, err=True)


def say_written(*paths: Path | None) -> None:
    """Print the names of written files to stderr."""
    for path in paths:
        if path:
            say(f"Wrote {path}")
