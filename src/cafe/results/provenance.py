"""``run.json``: the provenance of a run, and the check that its settings have not changed.

The file has no host name, user name or path.
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
from cafe.controllers import display_name
from cafe.errors import FileError
from cafe.files import explain_os_error, read_text
from cafe.results import storage
from cafe.scenario import Scenario

NAME = "run.json"
FORMAT = 1
NEEDED = {"version", "label", "policy", "seed", "clients", "settings", "scenario", "text"}
DAMAGED = "the file must describe a run of CAFe: it is damaged, or from another program."
_MISSING = object()


def describe_environment() -> dict[str, Any]:
    """Versions, machine and time, for a run that starts now."""
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
    """The provenance of a run of a scenario that starts now."""
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
    """Write a run's provenance, before its first round."""
    storage.write(folder / NAME, (json.dumps(begun, indent=2) + "\n").encode())


def exists(folder: Path) -> bool:
    """Whether a folder has a run."""
    path = folder / NAME
    try:
        return path.exists()
    except OSError as error:
        raise FileError(path, f"the file cannot be accessed: {explain_os_error(error)}.") from None


def read(folder: Path) -> dict[str, Any]:
    """Read a run's provenance."""
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
            f"the run must have format {FORMAT}. Got {form}: it was written by CAFe "
            f"{found.get('version')}; read it with that version.",
        )
    if not found.keys() >= NEEDED:
        raise FileError(path, DAMAGED)
    return dict(found)


def check_same(folder: Path, scenario: Scenario, label: str, seed: int) -> dict[str, Any]:
    """The provenance of the run in a folder; an error if its settings differ from these."""
    begun = read(folder)
    now = {"seed": seed, "version": __version__, **scenario.settings(label)}
    was = {"seed": begun["seed"], "version": begun["version"], **begun["settings"]}
    check_settings(folder, was, now)
    return begun


def check_settings(folder: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise an error that names the settings that have changed since a run started."""
    changed = _differences(was, json.loads(json.dumps(now)))
    if changed:
        raise FileError(
            folder,
            f"the run in this folder started with other settings: {'; '.join(changed)}. Undo the "
            "change and resume, or start over (--overwrite, or another --output).",
        )


def _differences(was: dict[str, Any], now: dict[str, Any], inside: str = "") -> list[str]:
    """The keys that differ, each with its old and new value."""
    found = []
    for key in {**was, **now}:
        old, new, name = was.get(key, _MISSING), now.get(key, _MISSING), f"{inside}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{name}.")
        elif old != new:
            found.append(f"{name} was {_format_value(old)} and is {_format_value(new)}")
    return found


def _format_value(value: Any) -> str:
    return "not given" if value is _MISSING else json.dumps(value)


def _cpu() -> str:
    """The processor's name, if the system provides it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor()
