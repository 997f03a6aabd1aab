"""Follow a run until it ends, by the picture that its server keeps in ``live.json``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.lab import processes
from cafe.flower.lab.lab import Lab

GLANCE = 0.3  # seconds between two looks at the file
ASK = 5.0  # seconds between two questions to the SuperLink, where the file says nothing new
QUIET = 20.0  # seconds without news after which it is asked


@dataclass(frozen=True)
class Moment:
    """How a run stands: the server's picture, if there is one, and how it ended, if it did."""

    live: dict[str, Any] | None = None
    finished: bool | None = None  # None: it goes on
    why: str = ""


def read_live(folder: Path) -> dict[str, Any] | None:
    """The server's picture, or None where there is none."""
    try:
        found = json.loads((folder / "live.json").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def server_lives(live: dict[str, Any]) -> bool:
    """Whether the process that keeps the picture is there; only on the server's own machine."""
    return processes.exists(live["pid"])


def follow(lab: Lab, run: str, folder: Path, since: float) -> Iterator[Moment]:
    """The run's moments, the last of which says how it ended.

    Args:
        lab: the federation.
        run: the run's id.
        folder: of its results.
        since: the time when it was submitted; an older picture is of a run before it.
    """
    asked, lost = time.monotonic(), 0
    while True:
        live = _news(folder, since)
        if live and live["state"] in ("finished", "stopped"):
            yield Moment(live, live["state"] == "finished", str(live.get("why", "")))
            return
        yield Moment(live)
        # It writes its last word before it ends: only if it is gone twice there is none.
        lost = lost + 1 if live and not server_lives(live) else 0
        if lost > 1:
            yield _ended(folder, since, "the server's process is gone")
            return
        silent = live is None or time.time() - live["wrote"] > QUIET
        if silent and time.monotonic() - asked > ASK:
            asked = time.monotonic()
            status = _status(lab, run)
            if not status.startswith(("pending", "starting", "running")):
                yield _ended(folder, since, status)
                return
        time.sleep(GLANCE)


def _news(folder: Path, since: float) -> dict[str, Any] | None:
    live = read_live(folder)
    return live if live and live.get("wrote", 0.0) >= since else None


def _status(lab: Lab, run: str) -> str:
    if not any(each.alive for each in lab.processes() if each.name == "superlink"):
        return "the SuperLink has ended"
    try:
        return lab.run_status(run)
    except InputError:
        # It may be too busy to answer; whether it lives is asked again in a moment.
        return "running"


def _ended(folder: Path, since: float, status: str) -> Moment:
    """What to think of a run that is over for the SuperLink."""
    live, old = _news(folder, since), read_live(folder)
    if live and live["state"] in ("finished", "stopped"):
        return Moment(live, live["state"] == "finished", str(live.get("why", "")))
    if live is None and status == "finished:completed":
        if old and old["state"] == "finished":
            return Moment(old, True, "It was before; --overwrite begins anew.")
        return Moment(None, True, "The app keeps no live.json.")
    return Moment(live, False, status)
