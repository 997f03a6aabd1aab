"""Which runs belong together: their scenario, label and order, and the federation of a run."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cafe.errors import CafeError
from cafe.federation import Federation
from cafe.federation_files import federation_from_table
from cafe.files import read_text
from cafe.rounds import History
from cafe.scenario import control_table
from cafe.scenario.policy_tables import controller_label, policy_label


class RunRecord(Protocol):
    """A run, finished or not, with what is needed to analyse it.

    It may also have ``expected``, an :class:`~cafe.theory.Expectation` or None; ``federation``, to
    calculate one from; ``folder``, where its files are; ``finished``, False if it was cut short;
    and ``evaluated_on``, the number of test examples of each evaluation, if the default chose it.
    """

    @property
    def history(self) -> History:
        """What the run did and cost."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the run comes from, as JSON values.

        ``label`` names the policy. ``settings`` are all settings that the run depends on, with or
        without its seed.
        """


R = TypeVar("R", bound=RunRecord)


def scenario_key(run: RunRecord) -> str | None:
    """The run's settings without policy and seed, as text; None if it has no settings."""
    settings = run.provenance.get("settings")
    if settings is None:
        return None
    rest = {key: value for key, value in settings.items() if key not in ("policy", "seed")}
    return json.dumps(rest, sort_keys=True, default=str)


def label_of(run: RunRecord) -> str:
    """The policy's label in its scenario; empty if it has none."""
    return f"{run.provenance.get('label') or ''}"


def drop_duplicates(results: Sequence[R]) -> list[R]:
    """Each run once: of copies of the same run, the one with the most rounds."""
    kept: dict[object, R] = {}
    for run in results:
        same = _identity(run)
        if same not in kept or run.history.rounds > kept[same].history.rounds:
            kept[same] = run
    return [*kept.values()]


def sort_runs(results: Sequence[R]) -> list[R]:
    """Runs by scenario, in the order of first appearance, then in the scenario's policy order."""
    scenarios = [scenario_key(run) for run in results]
    places = {scenario: place for place, scenario in enumerate(dict.fromkeys(scenarios))}

    def place(pair: tuple[R, str | None]) -> tuple[int, int]:
        run, scenario = pair
        labels = _label_order(f"{run.provenance.get('text') or ''}")
        return places[scenario], labels.get(label_of(run), len(labels))

    return [run for run, _ in sorted(zip(results, scenarios, strict=True), key=place)]


def scenario_names(firsts: Sequence[RunRecord]) -> list[str]:
    """A name per scenario, given one run of each: its folder's name, or its path if ambiguous."""
    folders: list[Path | None] = [getattr(run, "folder", None) for run in firsts]
    short = [
        "" if folder is None else _output_folder(folder.resolve(), run).name
        for folder, run in zip(folders, firsts, strict=True)
    ]
    return [
        name if name and short.count(name) == 1 else f"{folder or f'scenario {number}'}"
        for number, (name, folder) in enumerate(zip(short, folders, strict=True), 1)
    ]


def federation_of(run: RunRecord) -> tuple[Federation | None, str]:
    """The run's federation, or None and the reason why it is not known.

    A federation that was read from files is read again if the files are still unchanged in the
    working folder or in a parent folder of the run. The reason is empty if the run has no files.
    """
    known: Federation | None = getattr(run, "federation", None)
    settings = run.provenance.get("settings") or {}
    sums: dict[str, str] = settings.get("files") or {}
    if known is not None or not sums:
        return known, ""
    folder: Path | None = getattr(run, "folder", None)
    for place in (Path(), *(folder.resolve().parents if folder is not None else ())):
        if all(_unchanged(place / name, wanted) for name, wanted in sums.items()):
            try:
                return federation_from_table(settings["federation"], place / "scenario"), ""
            except CafeError:  # written by a version of CAFe with other tables
                break
    which = " and ".join(sums)
    return None, (
        f"{which}, which describes the federation, was not found or has changed since the run "
        "started: call cafe report in the scenario's folder."
    )


def _identity(run: RunRecord) -> object:
    """A key that two runs share only if they are copies of the same run."""
    begun, scenario = run.provenance, scenario_key(run)
    if scenario is None:
        return id(run)
    # A run on real clients cannot be repeated exactly: its start time belongs to its identity.
    began = None if "federation" in begun["settings"] else begun.get("started")
    return scenario, run.history.policy, label_of(run), run.history.seed, began


def _output_folder(folder: Path, run: RunRecord) -> Path:
    """The output folder of a simulation, which has a folder for each run."""
    own = folder.name == f"{label_of(run)}-seed-{run.history.seed}"
    return folder.parent if own else folder


@lru_cache(maxsize=64)
def _label_order(text: str) -> dict[str, int]:
    """Positions of the labels in a scenario's text: controller, ``[policy]``, then the others."""
    try:
        tables = tomllib.loads(text)
        found = {"controller": controller_label, "policy": policy_label}
        labels = [control_table.LABEL] if "control" in tables else []
        labels += [of(tables[name]["name"]) for name, of in found.items() if name in tables]
        labels += tables.get("policies", ())
    except (ValueError, KeyError, TypeError):  # not a valid scenario
        return {}
    return {label: place for place, label in enumerate(labels)}


def _unchanged(path: Path, wanted: str) -> bool:
    """Whether a file exists and has this SHA-256."""
    try:
        return path.is_file() and hashlib.sha256(read_text(path).encode()).hexdigest() == wanted
    except (CafeError, OSError):
        return False
