"""Where runs come from: which of them belong together, in which order, and who took part."""

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
from cafe.scenario.policy_tables import controller_label, policy_label


class RunRecord(Protocol):
    """A run that is over, or as far as it has come.

    It may also have ``expected``, an :class:`~cafe.theory.Expectation` or None; ``federation``, to
    calculate one from; ``folder``, where it lies; and ``finished``, False for one cut short.
    """

    @property
    def history(self) -> History:
        """What the run did and cost."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where it came from, as JSON has it; a ``label`` in it is what the policy is called.

        ``settings`` in it are all that the run depends on, with or without its seed.
        """


R = TypeVar("R", bound=RunRecord)


def scenario_of(run: RunRecord) -> str | None:
    """All that a run depends on but its policy and seed, as text; None where it does not say."""
    settings = run.provenance.get("settings")
    if settings is None:
        return None
    rest = {key: value for key, value in settings.items() if key not in ("policy", "seed")}
    return json.dumps(rest, sort_keys=True, default=str)


def label_of(run: RunRecord) -> str:
    """What the policy is called in its scenario."""
    return f"{run.provenance.get('label') or ''}"


def once(results: Sequence[R]) -> list[R]:
    """Every run once: of those that must be the same, the one that has come furthest."""
    kept: dict[object, R] = {}
    for run in results:
        same = _identity(run)
        if same not in kept or run.history.rounds > kept[same].history.rounds:
            kept[same] = run
    return [*kept.values()]


def ordered(results: Sequence[R]) -> list[R]:
    """Scenario by scenario as they come; in each, policies as the scenario lists them."""
    scenarios = [scenario_of(run) for run in results]
    places = {scenario: place for place, scenario in enumerate(dict.fromkeys(scenarios))}

    def place(pair: tuple[R, str | None]) -> tuple[int, int]:
        run, scenario = pair
        labels = _labels(f"{run.provenance.get('text') or ''}")
        return places[scenario], labels.get(label_of(run), len(labels))

    return [run for run, _ in sorted(zip(results, scenarios, strict=True), key=place)]


def names(firsts: Sequence[RunRecord]) -> list[str]:
    """What scenarios are called, from a run of each: its folder, as short as tells them apart."""
    folders: list[Path | None] = [getattr(run, "folder", None) for run in firsts]
    short = [
        "" if folder is None else _outer(folder.resolve(), run).name
        for folder, run in zip(folders, firsts, strict=True)
    ]
    return [
        name if name and short.count(name) == 1 else f"{folder or f'scenario {number}'}"
        for number, (name, folder) in enumerate(zip(short, folders, strict=True), 1)
    ]


def federation_of(run: RunRecord) -> tuple[Federation | None, str]:
    """Who took part, or why that is not known: empty where a run could not say it anyway.

    A file that says it is used if it still lies in the working folder, or in one that the run lies
    in, and is still what it was.
    """
    known: Federation | None = getattr(run, "federation", None)
    settings = run.provenance.get("settings") or {}
    sums: dict[str, str] = settings.get("files") or {}
    if known is not None or not sums:
        return known, ""
    folder: Path | None = getattr(run, "folder", None)
    for place in (Path(), *(folder.resolve().parents if folder is not None else ())):
        if all(_same(place / name, wanted) for name, wanted in sums.items()):
            try:
                return federation_from_table(settings["federation"], place / "scenario"), ""
            except CafeError:  # a version of CAFe that reads tables otherwise
                break
    which = " and ".join(sums)
    return None, (
        f"{which}, which said who takes part, was not found as it was when the run began: call "
        "cafe report in the folder of the scenario."
    )


def _identity(run: RunRecord) -> object:
    """What no two runs have in common unless they are the same."""
    begun, scenario = run.provenance, scenario_of(run)
    if scenario is None:
        return id(run)
    # Real clients never do the same again: of them only a copy is the same run.
    began = None if "federation" in begun["settings"] else begun.get("started")
    return scenario, run.history.policy, label_of(run), run.history.seed, began


def _outer(folder: Path, run: RunRecord) -> Path:
    """The folder that was asked for: runs of a scenario have folders of their own in it."""
    own = folder.name == f"{label_of(run)}-seed-{run.history.seed}"
    return folder.parent if own else folder


@lru_cache(maxsize=64)
def _labels(text: str) -> dict[str, int]:
    """The place of all that run in a scenario's text: controller, ``[policy]``, then the others."""
    try:
        tables = tomllib.loads(text)
        found = {"controller": controller_label, "policy": policy_label}
        labels = [of(tables[name]["name"]) for name, of in found.items() if name in tables]
        labels += tables.get("policies", ())
    except (ValueError, KeyError, TypeError):  # no scenario, or one that was refused
        return {}
    return {label: place for place, label in enumerate(labels)}


def _same(path: Path, wanted: str) -> bool:
    """Whether a file still has the SHA-256 that it had."""
    try:
        return path.is_file() and hashlib.sha256(read_text(path).encode()).hexdigest() == wanted
    except (CafeError, OSError):
        return False
