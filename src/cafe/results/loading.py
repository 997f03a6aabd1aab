"""Loading runs from disk, finished or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import FileError, InputError, check_path
from cafe.federation import Federation
from cafe.federation_files.federation_toml import load_toml
from cafe.files import read_text
from cafe.results import checkpoint, clients, events, provenance, result_json
from cafe.results.clients import Clients
from cafe.results.storage import read_arrays
from cafe.rounds.history import Curve, History
from cafe.rounds.outcome import Fate

MODEL = "model.npz"
REMEDY = f"Remove {result_json.NAME} and resume the run: its last checkpoint has all data."


@dataclass(frozen=True, eq=False)
class Result:
    """A run on disk.

    Attributes:
        history: what the run did and cost.
        provenance: versions, machine, scenario and settings.
        folder: the run's folder.
        finished: whether the run has ended.
        evaluated_on: the number of test examples of each evaluation, if the default chose it; None:
            all.
    """

    history: History
    provenance: dict[str, Any]
    folder: Path
    finished: bool = True
    evaluated_on: int | None = None

    @cached_property
    def federation(self) -> Federation | None:
        """The federation; None if the scenario reads it from another file."""
        begun = self.provenance
        if begun["settings"]["files"]:
            return None
        try:
            return load_toml(Path(begun["scenario"]), begun["text"])
        except InputError:  # written by a version of CAFe with other scenarios
            return None


def load(folder: str | Path) -> Result:
    """Load the run in a folder; an unfinished run is loaded as of its last checkpoint.

    Before the first checkpoint, ages and weights of clients are NaN.

    Args:
        folder: the run's folder, which has a ``run.json``.

    Example:
        >>> from cafe.results import execute, load
        >>> from cafe.scenario import scenario_from_text
        >>> text = '''
        ... federation = {clients = 20, rate = 1.0}
        ... policy = {name = "mcu", quorum = 10, deadline = 1.0}
        ... run = {rounds = 50}
        ... '''
        >>> scenario = scenario_from_text("small.toml", text)
        >>> _ = execute(scenario, "mcu", 0, "results/mcu-seed-0")
        >>> load("results/mcu-seed-0").history.rounds
        50
    """
    folder = check_path("folder", folder)
    if not provenance.exists(folder):
        raise FileError(
            folder,
            f"there is no run in this folder: it has no {provenance.NAME}. The runs of cafe "
            "simulate are in folders inside its output folder.",
        )
    begun = provenance.read(folder)
    if is_finished(folder):
        history, log = _finished(folder, begun)
        return Result(history, begun, folder, evaluated_on=log.evaluated_on)
    history, log = _unfinished(folder, begun)
    return Result(history, begun, folder, finished=False, evaluated_on=log.evaluated_on)


def find(folder: str | Path) -> list[Result]:
    """Load all runs in a folder and the folders below it, sorted by path.

    Args:
        folder: the output folder of a simulation, or any folder above it.

    Example:
        >>> from cafe.results import execute, find
        >>> from cafe.scenario import scenario_from_text
        >>> text = '''
        ... federation = {clients = 20, rate = 1.0}
        ... policy = {name = "mcu", quorum = 10, deadline = 1.0}
        ... run = {rounds = 50}
        ... '''
        >>> scenario = scenario_from_text("small.toml", text)
        >>> for seed in (0, 1):
        ...     _ = execute(scenario, "mcu", seed, f"both/mcu-seed-{seed}")
        >>> [result.folder.name for result in find("both")]
        ['mcu-seed-0', 'mcu-seed-1']
    """
    return [load(run) for run in runs_below(check_path("folder", folder))[0]]


def runs_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Folders with runs, and folders with a ``run.json`` of another program."""
    below = sorted(path.parent for path in folder.rglob(provenance.NAME))
    runs = [path for path in below if _is_run(path)]
    if not runs:
        raise FileError(
            folder, "there are no runs in this folder. Give the output folder of a simulation."
        )
    return runs, [path for path in below if path not in runs]


def _is_run(folder: Path) -> bool:
    """Whether a folder has a run of CAFe; a damaged one counts if it has a log."""
    try:
        begun = json.loads(read_text(folder / provenance.NAME))
    except (ValueError, RecursionError):  # damaged or not JSON; a FileError is a ValueError too
        return (folder / events.NAME).exists()
    return isinstance(begun, dict) and isinstance(begun.get("format"), int)


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has ended."""
    return (folder / result_json.NAME).exists()


def _finished(folder: Path, begun: dict[str, Any]) -> tuple[History, events.Events]:
    arrays = read_arrays(folder / clients.NAME, REMEDY)
    try:
        of, model = Clients.from_arrays(arrays), None
        if (folder / MODEL).exists():
            model = read_arrays(folder / MODEL, REMEDY)["model"]
    except KeyError as error:
        raise FileError(folder, f"the array {error} is missing. {REMEDY}") from None
    log = events.read(folder / events.NAME)
    history = _history(begun, log, of, model)
    result_json.check(folder / result_json.NAME, history)
    return history, log


def _unfinished(folder: Path, begun: dict[str, Any]) -> tuple[History, events.Events]:
    kept = checkpoint.read(folder / checkpoint.NAME)
    if kept is not None:
        log = events.read(folder / events.NAME, kept.events)
        return _history(begun, log, kept.clients), log
    path = folder / events.NAME
    so_far = events.read(path) if path.exists() else events.Events()
    return _history(begun, so_far, Clients.unknown(begun["clients"])), so_far


def _history(begun: dict[str, Any], log: events.Events, of: Clients, model: Any = None) -> History:
    """The history of a run, from its files."""
    columns = {name: np.array([line[name] for line in log.rounds]) for name in events.FIELDS}
    if not log.rounds:
        columns["fates"] = np.zeros((0, len(Fate)), dtype=np.int64)
        columns["work_by_fate"] = np.zeros((0, len(Fate)))
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
        accuracy_by_client=of.accuracy,
        policy_changes=(*log.policy_changes,),
    )
