"""Runs of a stock Flower app whose server is changed as the documentation says."""

from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cafe.flower.lab import Lab
from tests.support.flower.database import read_log
from tests.support.flower.trial import replace_app
from tests.support.flower.waiting import wait_until

NUMPY_APP = Path(__file__).parent / "stock_numpy_app"
CLIENTS = 3  # of the federation that several test files share
TORCH_APP = Path(__file__).parent / "stock_torch_app"
CALL = "        grid=grid,\n"
IMPORT = "from stock import task\n"


def change_server(lab: Lab, app: Path, changes: Mapping[str, str]) -> None:
    """Give a lab a stock app, with some texts of its server replaced."""
    replace_app(lab, app)
    server = lab.paths.folder / "stock" / "server_app.py"
    text = server.read_text()
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    server.write_text(text)


def watched(arguments: str) -> dict[str, str]:
    """The two changed lines of a server, given the arguments of ``watch`` after the Grid."""
    return {
        IMPORT: "from cafe.flower import watch\n" + IMPORT,
        CALL: f"        grid=watch(grid, {arguments}),\n",
    }


def load_task() -> Any:
    """The module ``task`` of the stock app."""
    spec = importlib.util.spec_from_file_location("stock_task", NUMPY_APP / "stock" / "task.py")
    assert spec is not None
    assert spec.loader is not None
    task = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(task)
    return task


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a log of response times."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def wait_for_rows(lab: Lab, run: str, path: Path, seen: Callable[[list[Any]], bool]) -> None:
    """Wait until the rows of a log fulfil a condition."""
    wait_until(lambda: seen(read_rows(path)), lambda: f"{read_rows(path)}\n{read_log(lab, run)}")


class Data:
    """The data files of a stock app's clients. A client waits for a file that is withheld."""

    def __init__(self, folder: Path, task: Any, partitions: int) -> None:
        self.folder, self._task = folder, task
        self._withheld: set[int] = set()
        folder.mkdir()
        for k in range(partitions):
            self.give(k)

    def path(self, partition: int) -> Path:
        """The file of a client."""
        return self.folder / f"partition-{partition}.csv"

    def text(self, partition: int) -> bytes:
        """The content of a client's file."""
        inputs, labels = self._task.make_examples(partition)
        lines = [
            ",".join(map(repr, [*row, float(label)]))
            for row, label in zip(inputs.tolist(), labels.tolist(), strict=True)
        ]
        return ("\n".join(lines) + "\n").encode()

    def give(self, partition: int) -> None:
        """Write a client's file."""
        draft = self.folder / f".draft-{partition}"
        draft.write_bytes(self.text(partition))
        draft.replace(self.path(partition))

    def withhold(self, partition: int) -> None:
        """Replace a client's file by a pipe without a writer: reading it takes for ever."""
        self.path(partition).unlink(missing_ok=True)
        os.mkfifo(self.path(partition))
        self._withheld.add(partition)

    def release(self, partition: int, *, keep: bool = True) -> None:
        """Give a client its file, also if it is already waiting for it.

        Without ``keep`` only a client that is waiting gets it; its next training fails.
        """
        self._withheld.discard(partition)
        pipe, text = self.folder / f".pipe-{partition}", self.text(partition)
        self.path(partition).rename(pipe)
        if keep:
            self.give(partition)
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody is reading
            return
        try:
            os.write(writer, text)
        finally:
            os.close(writer)

    def release_all(self) -> None:
        """Release what is still withheld: a client that waits for ever blocks its node."""
        for partition in [*self._withheld]:
            self.release(partition)

    def remove(self, partition: int) -> None:
        """Remove a client's file: its training fails."""
        self.path(partition).unlink()
