"""Follow a run until it ends.

CAFe's server writes ``live.json``. A run of any other app is followed by Flower's status and the
run's log.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.exception_text import plain_exceptions
from cafe.flower.lab.lab import Lab
from cafe.flower.lab.live_status import read_live, server_is_alive
from cafe.live.status_file import FINAL
from cafe.results.loading import is_finished

POLL = 0.3  # seconds between two reads of the file
STATUS_POLL = 5.0  # seconds between two requests to the SuperLink while the file does not change
QUIET = 20.0  # seconds without a change after which the SuperLink is asked
LOG_POLL = 10.0  # seconds between two requests for the log of a run without live.json
STOP_LIMIT = 30.0  # seconds to wait until the process of a stopped server has ended
LOG_LINES, SHOWN_LINES = 1000, 25  # the end of a log: to search for the reason, and to show
NO_SUPERLINK = "the SuperLink has ended"
ACTIVE = ("pending", "starting", "running")  # Flower's statuses of a run that has not ended
REASONS = {  # for Flower's statuses
    "finished:completed": "its server ended without writing its final state",
    "finished:failed": "its server failed",
    "finished:stopped": "it was stopped",
}
# A traceback ends at the first line that is not indented.
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)", re.MULTILINE
)
# What Flower's strategies log about each round, with ("train") and before ("fit") its message API.
_RECEIVED = re.compile(r"aggregate_(?:train|fit): received (\d+) results and (\d+) failures", re.I)
_REPLY_ERROR = re.compile(r"Received error in reply from node \d+: (.*)")
_CAFE_ERROR = re.compile(r"cafe\.errors\.\w+: ")  # the message is complete without the type


@dataclass(frozen=True)
class RunView:
    """The present state of a run.

    Attributes:
        live: the content of ``live.json``; None if there is none for this run.
        finished: whether the run has finished (True) or ended early (False); None: it is running.
        why: how it ended.
        earlier: whether it had finished before it was submitted.
        log: the end of a log, if ``why`` does not explain enough.
        status: Flower's status of a run without ``live.json``; empty if it was not requested.
        lines: the lines that were added to the log of such a run since the last view.
    """

    live: dict[str, Any] | None = None
    finished: bool | None = None
    why: str = ""
    earlier: bool = False
    log: str = ""
    status: str = ""
    lines: tuple[str, ...] = ()


def follow(lab: Lab, run: str, folder: Path | None) -> Iterator[RunView]:
    """Yield the state of a run repeatedly; the last one contains how the run ended.

    Args:
        lab: the federation.
        run: the id of the run.
        folder: where the run writes its results. Its ``live.json`` may be of another run: an
            earlier one, or one that is still writing there, so that this run is rejected. None:
            the app is not one of CAFe's, and writes no ``live.json``.
    """
    if folder is None:
        yield from _follow_log(lab, run)
        return
    asked, missing = time.monotonic(), 0
    while True:
        live = read_live(folder, run)
        if live and live["state"] in FINAL:
            yield _final_view(live)
            return
        yield RunView(live)
        # A server writes its final state before it ends: read the file once more to be sure.
        missing = missing + 1 if live and not server_is_alive(live) else 0
        if missing > 1:
            yield _explain_end(lab, run, folder, _explain_missing_server(lab, run))
            return
        quiet = live is None or time.time() - live["wrote"] > QUIET
        if quiet and time.monotonic() - asked > STATUS_POLL:
            asked = time.monotonic()
            status = _status(lab, run)
            if not status.startswith(ACTIVE):
                yield _explain_end(lab, run, folder, status)
                return
        time.sleep(POLL)


def _follow_log(lab: Lab, run: str) -> Iterator[RunView]:
    """Yield Flower's status of a run and the new lines of its log, until it ends."""
    shown, read = 0, -LOG_POLL
    while True:
        status = _status(lab, run)
        ended = not status.startswith(ACTIVE)
        lines: list[str] = []
        if status != NO_SUPERLINK and (ended or time.monotonic() - read > LOG_POLL):
            lines, read = lab.run_log(run, None).splitlines(), time.monotonic()
        new, shown = tuple(lines[shown:]), max(shown, len(lines))
        if not ended:
            yield RunView(status=status, lines=new)
            time.sleep(STATUS_POLL)
            continue
        if status == "finished:completed":
            finished, why = _count_replies("\n".join(lines))
        else:
            finished = False
            raised = _CAFE_ERROR.sub("", _find_exception("\n".join(lines)), count=1)
            why = raised or REASONS.get(status, status)
        yield RunView(finished=finished, why=why, status=status, lines=new)
        return


def stop(lab: Lab, run: str, folder: Path | None) -> None:
    """Stop a run, and wait until its server has ended, so that the run can be resumed.

    Flower reports a run as stopped some seconds before its server's process has ended.
    """
    with suppress(InputError):  # it may have ended in the meantime
        lab.stop_run(run)
    live, until = folder and read_live(folder, run), time.monotonic() + STOP_LIMIT
    while live and server_is_alive(live) and time.monotonic() < until:
        time.sleep(POLL)


def _status(lab: Lab, run: str) -> str:
    if not lab.is_running("superlink"):
        return NO_SUPERLINK
    try:
        return lab.run_status(run)
    except InputError:
        # The SuperLink may be too busy to answer; whether it is alive is checked at the next poll.
        return "running"


def _explain_missing_server(lab: Lab, run: str) -> str:
    if not lab.is_running("superlink"):
        return NO_SUPERLINK
    with suppress(InputError):  # Flower may not have noticed yet that the server has ended
        lab.stop_run(run)
    return "the server's process has ended"


def _final_view(live: dict[str, Any]) -> RunView:
    return RunView(live, live["state"] == "finished", str(live["why"]))


def _explain_end(lab: Lab, run: str, folder: Path, status: str) -> RunView:
    """The last view of a run whose server no longer writes ``live.json``."""
    live = read_live(folder, run)
    if live and live["state"] in FINAL:
        return _final_view(live)
    completed = status == "finished:completed"
    if is_finished(folder) and (completed or live is not None):
        return RunView(read_live(folder), True, earlier=live is None)
    if completed and live is None:
        return RunView(None, True, "The app writes no live.json.")
    log = "" if status == NO_SUPERLINK else lab.run_log(run, LOG_LINES)
    raised = _find_exception(log)
    if _CAFE_ERROR.match(raised):
        return RunView(live, False, _CAFE_ERROR.sub("", raised, count=1))
    why = raised or REASONS.get(status, status)
    whose, lines = ("run", log) if log else ("SuperLink", lab.log_tail("superlink"))
    shown = "\n".join(lines.splitlines()[-SHOWN_LINES:])
    return RunView(live, False, why, log=f"The end of the {whose}'s log:\n{shown}")


def _count_replies(log: str) -> tuple[bool, str]:
    """Whether a completed run had a success, as far as its log shows it, and the replies' numbers.

    Flower calls a run completed even if every reply of its clients was an error.
    """
    counts = [(int(good), int(bad)) for good, bad in _RECEIVED.findall(log)]
    if not counts:
        return True, ""
    results, failures = (sum(each) for each in zip(*counts, strict=True))
    rounds = f"{len(counts)} round{'s' if len(counts) > 1 else ''}"
    if results:
        return True, f"In {rounds} the server received {results} results and {failures} failures."
    errors = _REPLY_ERROR.findall(log)
    reason = f"The last error of a client: {plain_exceptions(errors[-1])}. " if errors else ""
    return False, (
        f"in {rounds} the server received no result and {failures} failures, so the model was "
        f"never changed. {reason}The nodes' logs are in .federation/logs"
    )


def _find_exception(log: str) -> str:
    """The last line of the traceback of a run's server; empty if the log contains none."""
    _, died, rest = log.rpartition("ServerApp raised an exception")
    found = _TRACEBACK.findall(rest) if died else []
    return str(found[-1]) if found else ""
