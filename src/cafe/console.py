"""The terminal: what verbs print, how they show progress, what they refuse before they work."""

from __future__ import annotations

import json
import math
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

Show = Callable[[float, int, str], None]  # the share that is done, how many are done, and more
LINES_APART = 10.0  # seconds between two lines about progress where there is no terminal


@contextmanager
def progress_bar(label: str) -> Iterator[ProgressCallback]:
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


@contextmanager
def progress_line(label: str, noun: str) -> Iterator[Show]:
    """How far something long is: a bar on a terminal, a line now and then in a pipe."""
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
    """Say what is waited for, no one knows how long: then a bar, in a pipe a line now and then."""
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

    def go_on_saying() -> None:
        while not over.wait(LINES_APART):
            say(f"... for {time.monotonic() - began:,.0f} s now")

    voice = Thread(target=go_on_saying, name="cafe-waiting", daemon=True)
    voice.start()
    try:
        yield
    finally:
        over.set()
        voice.join()


@contextmanager
def resumable() -> Iterator[None]:
    """Ctrl-C ends in a line that says how to go on, and in the exit code that shells expect."""
    try:
        yield
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
        say(f"Stopped. Go on with: cafe {shlex.join(words)} --resume")
        raise typer.Exit(130) from None


def print_output(shown: Any) -> None:
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
            from cafe.report.plotting import check_format

            check_format(path)
            if folder:
                check_folder(path)


def check_page(path: Path | None) -> None:
    """Refuse a page that could not be written in the end before any work is done."""
    if path:
        if path.suffix.lower() not in (".html", ".htm"):
            raise FileError(
                path,
                "a page's name must end in .html or .htm, which tells browsers what it is. "
                f"Got '{path.name}': give it another name.",
            )
        check_pictures(path.with_suffix(".svg"), folder=False)  # it has pictures in it
        check_folder(path)


def check_folder(path: Path | None) -> None:
    """Refuse a file whose folder is not there."""
    if path and not path.parent.is_dir():
        raise FileError(path, f"the file cannot be written: there is no folder {path.parent}.")


def say(sentence: str) -> None:
    """A sentence beside the output that programs read."""
    typer.echo(sentence, err=True)


def say_written(*paths: Path | None) -> None:
    """Name the files that were written, beside the output that programs read."""
    for path in paths:
        if path:
            say(f"Wrote {path}")
