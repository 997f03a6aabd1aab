"""A CSV file of response times, which ``cafe fit`` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cafe.errors import FileError
from cafe.files import explain_os_error, read_text

# cafe fit reads the first three columns and the time of sending.
HEADER = ("client", "seconds", "deadline", "sent", "round", "attempt", "status", "error")


@dataclass(frozen=True)
class LogRow:
    """One client in one attempt of a round.

    Attributes:
        client: Flower's id of the node.
        seconds: its response time; None if it did not report.
        deadline: how long the server waited for it.
        sent: when the model was sent: ISO 8601, UTC.
        round: number of the round, from 1.
        attempt: number of the attempt, from 1.
        status: ``reported``, ``late``, ``failed`` or ``offline``.
        error: why it failed.
    """

    client: str
    seconds: float | None
    deadline: float
    sent: str
    round: int
    attempt: int
    status: str
    error: str = ""


class ResponseLog:
    """Appends rows to a CSV file.

    Args:
        path: the file. Rows are appended if it exists with the same columns.
        warn: called with a sentence when rows cannot be written.

    Raises:
        FileError: if the file cannot be written, or has other columns.
    """

    def __init__(self, path: str | Path, warn: Callable[[str], None]) -> None:
        self.path, self._warn = Path(path).absolute(), warn
        header = ",".join(HEADER)
        text = read_text(self.path) if self.path.exists() else ""
        if text and text.splitlines()[0] != header:
            raise FileError(
                path,
                f"the first line must be {header}, so that rows can be appended. "
                f"Got {text.splitlines()[0][:80]!r}. Give log= another path.",
                1,
            )
        kept = text[: text.rfind("\n") + 1]  # an incomplete last line is removed
        try:
            if kept != text or not text:
                self.path.write_text(kept or header + "\n", encoding="utf-8")
            with self.path.open("a"):
                pass  # a file that cannot be appended to is an error now, not after the first round
        except OSError as error:
            raise FileError(
                path, f"the log cannot be written: {explain_os_error(error)}."
            ) from None

    def add(self, rows: Iterable[LogRow]) -> None:
        """Append rows with one call of the system, so that readers see all of them or none."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            seconds = "" if row.seconds is None else f"{row.seconds:.3f}"
            error = " ".join(row.error.split())
            cells = (row.client, seconds, f"{row.deadline:.3f}", row.sent, row.round, row.attempt)
            writer.writerow([*cells, row.status, error])
        try:
            with self.path.open("ab", buffering=0) as file:
                file.write(text.getvalue().encode())
        except OSError as error:  # training goes on without the log
            self._warn(f"{self.path}: rows are lost: {explain_os_error(error)}.")
