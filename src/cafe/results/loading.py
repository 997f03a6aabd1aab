"""Runs that are on disk: what they did, and where they come from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import FileError, InputError
from cafe.federation import Federation
from cafe.federation_files.federation_toml import load_toml
from cafe.files import read_text
from cafe.results import checkpoint, clients, events, figures, provenance
from cafe.results.clients import Clients
from cafe.results.storage import read_arrays
from cafe.rounds.history import Curve, History
from cafe.rounds.outcome import Fate

MODEL = "model.npz"
REMEDY = f"Remove {figures.NAME} and resume the run: its last checkpoint has all that is needed."


@dataclass(frozen=True, eq=False)
class Result:
    """A run on disk.

    Attributes:
        history: what it did.
        provenance: where it comes from: versions, machine, scenario, settings.
        folder: where it is.
        finished: whether it has come to its end.
    """

    history: History
    provenance: dict[str, Any]
    folder: Path
    finished: bool = True

    @cached_property
    def federation(self) -> Federation | None:
        """Who took part; None where the scenario's text alone does not say."""
        begun = self.provenance
        if begun["settings"]["files"]:
            return None
        try:
            return load_toml(Path(begun["scenario"]), begun["text"])
        except InputError:  # a version of CAFe that reads scenarios otherwise
            return None


def load(folder: str | Path) -> Result:
    """The run in a folder; one that is not finished is read as of its last checkpoint.

    Before its first checkpoint its clients' ages and weights are not known: they are NaN.
    """
    folder = Path(folder)
    if not provenance.exists(folder):
        raise FileError(
            folder,
            f"there is no run in this folder: it has no {provenance.NAME}. Runs lie one folder "
            "deeper than the output of cafe simulate.",
        )
    begun = provenance.read(folder)
    if is_finished(folder):
        return Result(_finished(folder, begun), begun, folder)
    return Result(_unfinished(folder, begun), begun, folder, finished=False)


def find(folder: str | Path) -> list[Result]:
    """Every run in a folder and the folders below it, by name."""
    return [load(run) for run in runs_below(Path(folder))[0]]


def runs_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Where runs were begun in a folder and below it, and where other programs have such a file."""
    below = sorted(path.parent for path in folder.rglob(provenance.NAME))
    runs = [path for path in below if _is_run(path)]
    if not runs:
        raise FileError(
            folder, "there are no runs in this folder: name the output of a simulation."
        )
    return runs, [path for path in below if path not in runs]


def _is_run(folder: Path) -> bool:
    """Whether a run of CAFe was begun here; one that is damaged was, if it has a log."""
    try:
        begun = json.loads(read_text(folder / provenance.NAME))
    except (ValueError, RecursionError):  # damaged or no JSON at all; a FileError is one too
        return (folder / events.NAME).exists()
    return isinstance(begun, dict) and isinstance(begun.get("format"), int)


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has come to its end."""
    return (folder / figures.NAME).exists()


def _finished(folder: Path, begun: dict[str, Any]) -> History:
    arrays = read_arrays(folder / clients.NAME, REMEDY)
    try:
        of, model = Clients.from_arrays(arrays), None
        if (folder / MODEL).exists():
            model = read_arrays(folder / MODEL, REMEDY)["model"]
    except KeyError as error:
        raise FileError(folder, f"there is no {error} where it should be. {REMEDY}") from None
    history = _history(begun, events.read(folder / events.NAME), of, model)
    figures.check(folder / figures.NAME, history)
    return history


def _unfinished(folder: Path, begun: dict[str, Any]) -> History:
    kept = checkpoint.read(folder / checkpoint.NAME)
    if kept is not None:
        return _history(begun, events.read(folder / events.NAME, kept.events), kept.clients)
    path = folder / events.NAME
    so_far = events.read(path) if path.exists() else events.Events()
    return _history(begun, so_far, Clients.unknown(begun["clients"]))


def _history(begun: dict[str, Any], log: events.Events, of: Clients, model: Any = None) -> History:
    """A history from what was written of it."""
    columns = {name: np.array([line[name] for line in log.rounds]) for name in events.FIELDS}
    if not log.rounds:
        columns["fates"] = np.zeros((0, len(Fate)), dtype=np.int64)
    return History(
        policy=begun["policy"],
        seed=begun["seed"],
        by_round=columns,
        age_by_client=of.age,
        merged_by_client=of.merged,
        weight_by_client=of.weight,
        open_jobs=of.open_jobs,
        curve=Curve.of(log.scores, columns) if "task" in begun["settings"] else None,
        model=model,
    )
