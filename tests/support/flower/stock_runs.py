"""Runs of a stock Flower app whose server is changed as the documentation says."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cafe.flower.lab import Lab
from tests.support.flower.trial import run_status
from tests.support.flower.waiting import wait_until

NUMPY_APP = Path(__file__).parent / "stock_numpy_app"
TORCH_APP = Path(__file__).parent / "stock_torch_app"
CALL = "        grid=grid,\n"
IMPORT = "from stock import task\n"


def copy_watched(app: Path, folder: Path, arguments: str) -> Path:
    """Copy an app, with the two changed lines of its server; return the copy's folder.

    Args:
        app: the stock app.
        folder: where it is copied to.
        arguments: of ``watch``, after the Grid.
    """
    shutil.copytree(app, folder, ignore=shutil.ignore_patterns("__pycache__"))
    server = folder / "stock" / "server_app.py"
    text = server.read_text()
    assert text.count(CALL) == text.count(IMPORT) == 1
    text = text.replace(IMPORT, "from cafe.flower import watch\n" + IMPORT)
    server.write_text(text.replace(CALL, f"        grid=watch(grid, {arguments}),\n"))
    return folder


def read_log(path: Path) -> list[dict[str, str]]:
    """The rows of a log of response times."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def finished(lab: Lab, run: str) -> str:
    """The status of a run at its end."""

    def ended() -> str:
        status = run_status(lab, run)
        return status if status.startswith("finished") else ""

    return wait_until(ended, lambda: lab.run_log(run, 100), pause=2.0)


def wait_for_rows(lab: Lab, run: str, path: Path, seen: Callable[[list[Any]], bool]) -> None:
    """Wait until the rows of a log fulfil a condition."""
    wait_until(lambda: seen(read_log(path)), lambda: f"{read_log(path)}\n{lab.run_log(run, 100)}")


class Data:
    """The data files of a stock app's clients. A client waits for a file that is withheld."""

    def __init__(self, folder: Path, task: Any, partitions: int) -> None:
        self.folder, self._task = folder, task
        folder.mkdir()
        for k in range(partitions):
            self.give(k)

    def path(self, partition: int) -> Path:
        """The file of a client."""
        return self.folder / f"partition-{partition}.csv"

    def give(self, partition: int) -> None:
        """Write a client's file."""
        inputs, labels = self._task.make_examples(partition)
        lines = [
            ",".join(map(repr, [*row, float(label)]))
            for row, label in zip(inputs.tolist(), labels.tolist(), strict=True)
        ]
        draft = self.folder / f".draft-{partition}"
        draft.write_text("\n".join(lines) + "\n")
        draft.replace(self.path(partition))

    def withhold(self, partition: int) -> None:
        """Replace a client's file by a pipe without a writer: reading it takes for ever."""
        self.path(partition).unlink(missing_ok=True)
        os.mkfifo(self.path(partition))

    def release(self, partition: int) -> None:
        """Give a client its file, also if it is already waiting for it."""
        pipe = self.folder / f".pipe-{partition}"
        self.path(partition).rename(pipe)
        self.give(partition)
        text = self.path(partition).read_bytes()
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody is reading
            return
        try:
            os.write(writer, text)
        finally:
            os.close(writer)

    def remove(self, partition: int) -> None:
        """Remove a client's file: its training fails."""
        self.path(partition).unlink()
