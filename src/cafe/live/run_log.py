"""The files of a live run: rounds, jobs, response times, and a checkpoint with their lengths.

Beside the files of any run there are ``jobs.jsonl``, a line per job when its fate is known;
``responses.csv``, the clients' response times, for ``cafe fit``; ``orders.jsonl``, the orders since
the checkpoint; and ``arrays.npz``, the model by name.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Self

import numpy as np

from cafe.engine.snapshot import State
from cafe.errors import FileError
from cafe.live.free_space import check_space
from cafe.live.interrupted_round import resume_after
from cafe.live.job_records import JobRecord, PlayedRound, Response
from cafe.live.live_run import LiveRun
from cafe.live.order_log import NAME as ORDERS
from cafe.live.order_log import OrderLog, read_unsaved
from cafe.live.snapshot import identity, restore, save
from cafe.live.status_file import NAME as STATUS
from cafe.results import checkpoint, events, provenance
from cafe.results.execution import check_no_stray_files, remove_run_files
from cafe.results.storage import AppendOnlyFile
from cafe.rounds.outcome import Outcome

JOBS, RESPONSES, ARRAYS = "jobs.jsonl", "responses.csv", "arrays.npz"
METRICS = "metrics.jsonl"  # the metrics of a run with Flower's usual messages
HEADER = "client,seconds,deadline"
REMEDY = "Copy it here again, or start the run over (--overwrite, or another folder)."

_FILES = (STATUS, ORDERS, JOBS, RESPONSES, ARRAYS, METRICS)  # files that only live runs have


def prepare_folder(folder: Path, run: LiveRun, *, evaluates: bool, overwrite: bool) -> None:
    """Write a new run's provenance, or check that an existing run has the same settings.

    Args:
        folder: the run's folder.
        run: the run.
        evaluates: whether the server evaluates the model.
        overwrite: delete the run that is in the folder.
    """
    if overwrite:
        check_no_stray_files(folder, _FILES)
        remove_run_files(folder, _FILES)
    settings = {"files": {}, **identity(run)}
    if evaluates:
        settings["task"] = "on real clients"
    if provenance.exists(folder):
        begun = provenance.read(folder)
        provenance.check_settings(folder, begun["settings"], settings)
        return
    check_no_stray_files(folder, _FILES)
    provenance.write(
        folder,
        provenance.describe_environment()
        | {
            "scenario": "",
            "text": "",
            "label": f"{run.title}, real",
            "policy": run.title,
            "seed": run.seed,
            "clients": 0,
            "settings": settings,
        },
    )


class RunLog:
    """The growing files of a run. Opening them restores the run from its checkpoint, if any.

    Args:
        folder: the run's folder.
        run: a new run.

    Attributes:
        resumed: whether an earlier server has played rounds or sent orders.
        interrupted: the round in which it was killed, which is booked but not yet saved; None if it
            was killed between two rounds.
    """

    def __init__(self, folder: Path, run: LiveRun) -> None:
        self._folder, self._run = folder, run
        kept = checkpoint.read(folder / checkpoint.NAME, REMEDY)
        lengths = (0, 0, 0)
        if kept is not None:
            events.read(folder / events.NAME, kept.events)  # raises an error if lines are missing
            kept.restore_with(lambda state: restore(run, state))
            jobs, responses = (int(n) for n in kept.state["journal"])
            lengths = (kept.events, jobs, responses)
            for name, length in ((JOBS, jobs), (RESPONSES, responses)):
                _check_length(folder / name, length)
            run.responses.extend(_read_responses(folder / RESPONSES, responses))
        self.events = events.Log(folder / events.NAME, lengths[0])
        self.jobs = AppendOnlyFile(folder / JOBS, lengths[1])
        self.responses = AppendOnlyFile(folder / RESPONSES, lengths[2])
        if kept is None:
            self.responses.add(HEADER)
        self.orders = OrderLog(folder / ORDERS, run)
        self.interrupted = resume_after(run, read_unsaved(folder / ORDERS, run.ledger.round))
        self.resumed = kept is not None or self.interrupted is not None
        run.restarts += self.resumed
        run.on_send, run.on_time = self.orders.add, self.orders.note_time

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for file in (self.events, self.jobs, self.responses, self.orders):
            file.__exit__(None, *failure[1:])

    def add_round(self, played: PlayedRound) -> None:
        """Append a round to the files."""
        self.events.outcome(played.outcome, self._run.policy_changes)
        for record in played.records:
            self.jobs.add(events.format_line(record.line()))
        for response in played.responses:
            self.responses.add(_row(response))

    def check_space(self) -> None:
        """Raise an error if the disk has too little room for the files of another round."""
        check_space(self._folder, self._run)

    def save(self) -> None:
        """Write all that was appended, and a checkpoint of the run, safely to the disk."""
        lengths = [file.sync() for file in (self.events, self.jobs, self.responses)]
        state: State = save(self._run) | {"journal": np.array(lengths[1:])}
        history = self._run.history()
        checkpoint.write(self._folder / checkpoint.NAME, history, state, lengths[0])
        self.orders.clear()


def read_jobs(folder: str | Path) -> list[JobRecord]:
    """The jobs of a run, in the order in which their fates became known."""
    path = Path(folder) / JOBS
    return [JobRecord(**line) for _, line in events.parse_lines(path, path.read_bytes())]


def read_rounds(folder: str | Path) -> list[Outcome]:
    """The outcomes of a run's rounds."""
    found = events.read(Path(folder) / events.NAME).rounds
    arrays = ("fates", "work_by_fate")
    return [Outcome(**line | {name: np.array(line[name]) for name in arrays}) for line in found]


def _check_length(path: Path, length: int) -> None:
    """Raise an error if a file is too short: appending would fill the gap with zeros."""
    found = path.stat().st_size if path.exists() else 0
    if found < length:
        raise FileError(
            path,
            f"the file must have at least {length} bytes, as when the checkpoint was written. "
            f"Got {found}: part of it is lost. {REMEDY}",
        )


def _row(response: Response) -> str:
    numbers = (response.seconds, response.deadline)
    cells = ("" if number is None else f"{number:.6f}" for number in numbers)
    return ",".join([response.name, *cells])


def _read_responses(path: Path, length: int) -> list[Response]:
    rows = csv.DictReader(path.read_bytes()[:length].decode().splitlines())
    return [
        Response(row["client"], _number(row["seconds"]), _number(row["deadline"])) for row in rows
    ]


def _number(text: str) -> float | None:
    return float(text) if text else None
