"""Follow a run until it ends, by the picture that its server keeps in ``live.json``."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.lab import processes
from cafe.flower.lab.lab import Lab
from cafe.results.loading import finished

GLANCE = 0.3  # seconds between two looks at the file
ASK = 5.0  # seconds between two questions to the SuperLink, where the file says nothing new
QUIET = 20.0  # seconds without news after which it is asked
GONE = 30.0  # seconds that a server has to end; it takes some
OVER = ("finished", "stopped")  # states of a picture that nobody will change any more
WHOLE, SHOWN = 1000, 25  # lines of a log: to look for the reason, and to show
NO_SUPERLINK = "the SuperLink has ended"
WORDS = {  # for what Flower says
    "finished:completed": "its server ended without a last word",
    "finished:failed": "its server failed",
    "finished:stopped": "it was stopped",
}
# A traceback ends at the first line that is not indented.
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)", re.MULTILINE
)
_OURS = re.compile(r"cafe\.errors\.\w+: ")  # whole sentences, which need no name before them


@dataclass(frozen=True)
class Moment:
    """How a run stands: the server's picture, if there is one, and how it ended, if it did."""

    live: dict[str, Any] | None = None
    finished: bool | None = None  # None: it goes on
    why: str = ""
    earlier: bool = False  # it was finished before it was submitted
    log: str = ""  # what a log says last, where why does not say it all


def read_live(folder: Path, run: str | None = None) -> dict[str, Any] | None:
    """The server's picture, or None where there is none; if a run is named, only of that one."""
    try:
        found = json.loads((folder / "live.json").read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or run not in (None, found.get("run")):
        return None
    return found


def server_lives(live: dict[str, Any]) -> bool:
    """Whether the process that keeps the picture is there; only on the server's own machine."""
    return processes.exists(live["pid"])


def follow(lab: Lab, run: str, folder: Path) -> Iterator[Moment]:
    """The moments of a run whose results go to a folder; the last says how it ended.

    A picture of another run may be in the folder: of an earlier one, or of one that is at work
    there and because of which this one is refused.
    """
    asked, lost = time.monotonic(), 0
    while True:
        live = read_live(folder, run)
        if live and live["state"] in OVER:
            yield _told(live)
            return
        yield Moment(live)
        # It writes its last word before it ends: only if it is gone twice there is none.
        lost = lost + 1 if live and not server_lives(live) else 0
        if lost > 1:
            yield _ended(lab, run, folder, _gone(lab, run))
            return
        silent = live is None or time.time() - live["wrote"] > QUIET
        if silent and time.monotonic() - asked > ASK:
            asked = time.monotonic()
            status = _status(lab, run)
            if not status.startswith(("pending", "starting", "running")):
                yield _ended(lab, run, folder, status)
                return
        time.sleep(GLANCE)


def stop(lab: Lab, run: str, folder: Path) -> None:
    """Stop a run, and wait until its server has let go of the folder: then it can be gone on with.

    Flower says that a run is stopped some seconds before its server's process has ended.
    """
    with suppress(InputError):  # it may have ended just now
        lab.stop_run(run)
    live, until = read_live(folder, run), time.monotonic() + GONE
    while live and server_lives(live) and time.monotonic() < until:
        time.sleep(GLANCE)


def _status(lab: Lab, run: str) -> str:
    if not lab.runs("superlink"):
        return NO_SUPERLINK
    try:
        return lab.run_status(run)
    except InputError:
        # It may be too busy to answer; whether it lives is asked again in a moment.
        return "running"


def _gone(lab: Lab, run: str) -> str:
    """Why a server's process may be gone."""
    if not lab.runs("superlink"):
        return NO_SUPERLINK
    with suppress(InputError):  # Flower may not have noticed yet; most often it has
        lab.stop_run(run)
    return "the server's process is gone"


def _told(live: dict[str, Any]) -> Moment:
    return Moment(live, live["state"] == "finished", str(live["why"]))


def _ended(lab: Lab, run: str, folder: Path, status: str) -> Moment:
    """What to think of a run that is over for the SuperLink."""
    live = read_live(folder, run)
    if live and live["state"] in OVER:
        return _told(live)
    completed = status == "finished:completed"
    if finished(folder) and (completed or live is not None):
        return Moment(read_live(folder), True, earlier=live is None)
    if completed and live is None:
        return Moment(None, True, "The app keeps no live.json.")
    log = "" if status == NO_SUPERLINK else lab.run_log(run, WHOLE)
    raised = _raised(log)
    if _OURS.match(raised):
        return Moment(live, False, _OURS.sub("", raised, count=1))
    why = raised or WORDS.get(status, status)
    whose, lines = ("run", log) if log else ("SuperLink", lab.log_tail("superlink"))
    shown = "\n".join(lines.splitlines()[-SHOWN:])
    return Moment(live, False, why, log=f"The end of the {whose}'s log:\n{shown}")


def _raised(log: str) -> str:
    """What a run's server died of, as its log has it."""
    _, died, rest = log.rpartition("ServerApp raised an exception")
    found = _TRACEBACK.findall(rest) if died else []
    return str(found[-1]) if found else ""
