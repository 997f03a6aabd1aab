"""``run.json``: where a run comes from, and whether a scenario is still the one it was begun with.

It says nothing about people and places: no host, no user, no path.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cafe._version import __version__
from cafe.control import display_name
from cafe.errors import FileError
from cafe.files import explain_os_error, read_text
from cafe.results import storage
from cafe.scenario import Scenario

NAME = "run.json"
FORMAT = 1
NEEDED = {"version", "label", "policy", "seed", "clients", "settings", "scenario", "text"}
DAMAGED = "this must say where a run comes from: it is damaged, or not CAFe's."
_NOT_THERE = object()


def describe_environment() -> dict[str, Any]:
    """What is known of any run that begins now, here."""
    return {
        "format": FORMAT,
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def describe_run(scenario: Scenario, label: str, seed: int, threads: int) -> dict[str, Any]:
    """Where a run of a scenario comes from that begins now."""
    return describe_environment() | {
        "threads": threads,
        "scenario": scenario.path.name,
        "sha256": hashlib.sha256(scenario.text.encode()).hexdigest(),
        "text": scenario.text,
        "label": label,
        "policy": display_name(scenario.policy_or_controller(label)),
        "seed": seed,
        "clients": scenario.federation.clients,
        "settings": scenario.settings(label),
    }


def write(folder: Path, begun: dict[str, Any]) -> None:
    """Put it down, before the run has done anything."""
    storage.write(folder / NAME, (json.dumps(begun, indent=2) + "\n").encode())


def exists(folder: Path) -> bool:
    """Whether a run was begun in a folder."""
    path = folder / NAME
    try:
        return path.exists()
    except OSError as error:
        raise FileError(path, f"this cannot be looked for: {explain_os_error(error)}.") from None


def read(folder: Path) -> dict[str, Any]:
    """What :func:`write` wrote."""
    path = folder / NAME
    text = read_text(path)
    try:
        found = json.loads(text)
        form = found["format"]
    except (ValueError, KeyError, TypeError):
        raise FileError(path, DAMAGED) from None
    if form != FORMAT:
        raise FileError(
            path,
            f"the run must be of format {FORMAT}. Got {form}: it was written by CAFe "
            f"{found.get('version')}; read it with that version.",
        )
    if not found.keys() >= NEEDED:
        raise FileError(path, DAMAGED)
    return dict(found)


def check_same(folder: Path, scenario: Scenario, label: str, seed: int) -> dict[str, Any]:
    """Where the run in a folder comes from; one that was begun with something else is refused."""
    begun = read(folder)
    now = {"seed": seed, "version": __version__, **scenario.settings(label)}
    was = {"seed": begun["seed"], "version": begun["version"], **begun["settings"]}
    check_settings(folder, was, now)
    return begun


def check_settings(folder: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on with a run that was begun with other settings, and name them."""
    changed = _differences(was, json.loads(json.dumps(now)))
    if changed:
        raise FileError(
            folder,
            f"the run here was begun with something else: {'; '.join(changed)}. A run is of one "
            "piece: undo the change and resume, or begin anew (--overwrite, or another --output).",
        )


def _differences(was: dict[str, Any], now: dict[str, Any], inside: str = "") -> list[str]:
    """Every key that differs, with its value then and now."""
    found = []
    for key in {**was, **now}:
        old, new, name = was.get(key, _NOT_THERE), now.get(key, _NOT_THERE), f"{inside}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{name}.")
        elif old != new:
            found.append(f"{name} was {_shown(old)} and is {_shown(new)}")
    return found


def _shown(value: Any) -> str:
    return "not given" if value is _NOT_THERE else json.dumps(value)


def _cpu() -> str:
    """The processor's name, where the system tells it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor()
