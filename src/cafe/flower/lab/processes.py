"""Processes that outlive the command which started them, and are never mistaken for others.

Each is known by its pid and its start time: a pid alone may belong to a stranger by now. Its
environment carries a mark, which all that it starts inherits: so what it left behind is found
even after it died, whatever session or group it went to; and so is one that was never recorded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MARK = "CAFE_FEDERATION"  # in the environment of every process of a federation
PATIENCE = 5.0  # seconds between asking a process to end and ending it
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Process:
    """A process of the federation: the SuperLink, a node, or what runs a node's tasks."""

    name: str
    pid: int
    started: int  # in the kernel's ticks since it booted
    boot: str  # which start of this machine that was
    mark: str  # what its environment and that of its offspring says
    alive: bool = False
    tasks: tuple[int, ...] = ()  # pids of what it started and is still there


@dataclass(frozen=True)
class _Seen:
    """What /proc says about one living process."""

    pid: int
    parent: int
    started: int
    mark: str | None


def start(
    name: str, command: Sequence[str], env: Mapping[str, str], mark: str, log: Path
) -> Process:
    """Start a process in its own session, its output at the end of a log file."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**env, MARK: mark},
            start_new_session=True,
        )
    _children.append(child)
    words = _stat(child.pid)
    assert words is not None, "a child that was not waited for is in /proc"
    return Process(name, child.pid, int(words[19]), _boot(), mark, alive=True)


def look(recorded: Iterable[Process]) -> list[Process]:
    """The same processes as they are now."""
    seen, boot = _everybody(), _boot()
    return [_now(each, seen, boot) for each in recorded]


def unrecorded(recorded: Iterable[Process], prefix: str) -> list[Process]:
    """Processes whose mark begins so, and is of none of those recorded.

    Who starts a process and is killed at that moment cannot record it any more.
    """
    known, boot = {each.mark for each in recorded}, _boot()
    found: dict[str, _Seen] = {}  # the oldest with each mark: it has started the others
    for each in sorted(_everybody().values(), key=lambda each: each.started):
        if each.mark and each.mark.startswith(prefix) and each.mark not in known:
            found.setdefault(each.mark, each)
    return [
        Process(mark.removeprefix(prefix), each.pid, each.started, boot, mark)
        for mark, each in found.items()
    ]


def exists(pid: int) -> bool:
    """Whether anybody has this pid; the dead of whom nobody took leave do not count."""
    words = _stat(pid)
    return words is not None and words[0] not in "ZX"


def send(recorded: Iterable[Process], what: signal.Signals) -> None:
    """Send a signal to processes and to all that they started."""
    seen, boot = _everybody(), _boot()
    for process in (_now(each, seen, boot) for each in recorded):
        for pid in [*([process.pid] if process.alive else []), *process.tasks]:
            _send(seen[pid], what)


def end(recorded: Iterable[Process]) -> None:
    """End processes and all that they started: politely, then without asking."""
    left = [*recorded]
    send(left, signal.SIGTERM)
    send(left, signal.SIGCONT)  # who was stopped must wake to hear it
    if left := wait(left):
        send(left, signal.SIGKILL)
        wait(left)


def wait(recorded: Iterable[Process]) -> list[Process]:
    """Wait until they and all that they started are gone; return those that are not."""
    until = time.monotonic() + PATIENCE
    while left := [each for each in look(recorded) if each.alive or each.tasks]:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return left


def _now(process: Process, seen: dict[int, _Seen], boot: str) -> Process:
    if process.boot != boot:
        return replace(process, alive=False, tasks=())
    leader = seen.get(process.pid)
    alive = leader is not None and leader.started == process.started
    own = {process.pid} if alive else set()
    own |= {each.pid for each in seen.values() if each.mark == process.mark}
    # Some of Flower's processes hide their environment; they are found by their parents.
    while more := {each.pid for each in seen.values() if each.parent in own} - own:
        own |= more
    return replace(process, alive=alive, tasks=tuple(sorted(own - {process.pid})))


def _everybody() -> dict[int, _Seen]:
    # Children that ended must be taken leave of, or others would still see them.
    _children[:] = [child for child in _children if child.poll() is None]
    found = {}
    for entry in os.listdir("/proc"):
        words = _stat(int(entry)) if entry.isdigit() else None
        if words is not None and words[0] not in "ZX":
            pid = int(entry)
            found[pid] = _Seen(pid, int(words[1]), int(words[19]), _mark(pid))
    return found


def _stat(pid: int) -> list[str] | None:
    """The words of /proc/PID/stat from the state on: its third, which is here the first."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()  # the name before it may hold anything


def _mark(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    before = f"{MARK}=".encode()
    found = (each for each in environment.split(b"\0") if each.startswith(before))
    mark = next(found, None)
    return None if mark is None else os.fsdecode(mark.removeprefix(before))


def _boot() -> str:
    """The name of this machine's current start: start times mean something only within it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _send(to: _Seen, what: signal.Signals) -> None:
    """Send a signal to one process, or to nobody if its pid has changed hands."""
    try:
        handle = os.pidfd_open(to.pid)
    except OSError:
        return
    try:
        # The handle is of whoever has the pid now, and stays his: look who that is.
        words = _stat(to.pid)
        if words is not None and int(words[19]) == to.started:
            signal.pidfd_send_signal(handle, what)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
