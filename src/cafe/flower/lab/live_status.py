"""What ``live.json`` says about a run, and whether its server is still running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cafe.flower.lab import processes
from cafe.live.status_file import FINAL, NAME


def read_live(folder: Path, run: str | None = None) -> dict[str, Any] | None:
    """The content of ``live.json``; None if there is none, or if it is of another run."""
    try:
        found = json.loads((folder / NAME).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or run not in (None, found.get("run")):
        return None
    return found


def server_is_alive(live: dict[str, Any]) -> bool:
    """Whether the server that writes ``live.json`` is running on this machine."""
    return processes.exists(live["pid"])


def find_killed_run(folder: Path) -> str | None:
    """The id of a run whose server was killed before it could write how the run has ended.

    Args:
        folder: the run's folder.

    Example:
        >>> from pathlib import Path
        >>> from cafe.flower.lab.live_status import find_killed_run
        >>> find_killed_run(Path("no-such-folder")) is None
        True
    """
    live = read_live(folder)
    if live is None or live["state"] in FINAL or server_is_alive(live):
        return None
    return str(live["run"])
