"""Processes that keep running after the command that started them, and how to identify them.

A process is identified by its pid and its start time, because a pid can be reused. Its environment
contains a mark that all its descendants inherit. So descendants are found even after the process
itself has died, whatever session or group they belong to, and so are processes that were never
recorded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MARK = "CAFE_FEDERATION"  # the environment variable of every process of a federation
GRACE_PERIOD = 5.0  # seconds between SIGTERM and SIGKILL
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Process:
    """A process of the federation: the SuperLink, a node, or a node's task runner."""

    name: str
    pid: int
    started: int  # in clock ticks since the machine booted
    boot: str  # the boot id of the machine
    mark: str  # the value of MARK in its environment and those of its descendants
    alive: bool = False
    tasks: tuple[int, ...] = ()  # pids of its descendants that are alive


@dataclass(frozen=True)
class _ProcEntry:
    """What /proc contains about one living process."""

    pid: int
    parent: int
    started: int
    mark: str | None


def start(
    name: str, command: Sequence[str], env: Mapping[str, str], mark: str, log: Path
) -> Process:
    """Start a process in its own session, and append its output to a log file."""
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
    return identify(name, child.pid, mark)


def identify(name: str, pid: int, mark: str) -> Process:
    """The process with a pid, which was started a moment ago and not yet waited for."""
    fields = _read_stat(pid)
    assert fields is not None, "a child stays in /proc until it is waited for"
    return Process(name, pid, int(fields[19]), _boot_id(), mark, alive=True)


def refresh(recorded: Iterable[Process]) -> list[Process]:
    """The same processes with their present ``alive`` and ``tasks``."""
    entries, boot = _list_processes(), _boot_id()
    return [_refresh(each, entries, boot) for each in recorded]


def find_unrecorded(recorded: Iterable[Process], prefix: str) -> list[Process]:
    """Processes whose mark begins with a prefix and is not the mark of a recorded process.

    A command that is killed right after it has started a process cannot record it.
    """
    known, boot = {each.mark for each in recorded}, _boot_id()
    found: dict[str, _ProcEntry] = {}  # the oldest with each mark: it has started the others
    for each in sorted(_list_processes().values(), key=lambda each: each.started):
        if each.mark and each.mark.startswith(prefix) and each.mark not in known:
            found.setdefault(each.mark, each)
    return [
        Process(mark.removeprefix(prefix), each.pid, each.started, boot, mark)
        for mark, each in found.items()
    ]


def exists(pid: int) -> bool:
    """Whether a process with this pid is alive; zombie processes do not count."""
    fields = _read_stat(pid)
    return fields is not None and fields[0] not in "ZX"


def send(recorded: Iterable[Process], signum: signal.Signals) -> None:
    """Send a signal to processes and all their descendants."""
    entries, boot = _list_processes(), _boot_id()
    for process in (_refresh(each, entries, boot) for each in recorded):
        for pid in [*([process.pid] if process.alive else []), *process.tasks]:
            _send(entries[pid], signum)


def end(recorded: Iterable[Process]) -> None:
    """End processes and all their descendants: with SIGTERM, then with SIGKILL."""
    left = [*recorded]
    if not left:
        return
    send(left, signal.SIGTERM)
    send(left, signal.SIGCONT)  # a stopped process receives SIGTERM only when it continues
    if left := wait(left):
        send(left, signal.SIGKILL)
        wait(left)


def wait(recorded: Iterable[Process]) -> list[Process]:
    """Wait until processes and their descendants have ended; return those that have not."""
    until = time.monotonic() + GRACE_PERIOD
    while left := [each for each in refresh(recorded) if each.alive or each.tasks]:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return left


def _refresh(process: Process, entries: dict[int, _ProcEntry], boot: str) -> Process:
    if process.boot != boot:
        return replace(process, alive=False, tasks=())
    leader = entries.get(process.pid)
    alive = leader is not None and leader.started == process.started
    own = {process.pid} if alive else set()
    own |= {each.pid for each in entries.values() if each.mark == process.mark}
    # Some of Flower's processes hide their environment: they are found by their parents.
    while more := {each.pid for each in entries.values() if each.parent in own} - own:
        own |= more
    return replace(process, alive=alive, tasks=tuple(sorted(own - {process.pid})))


def _list_processes() -> dict[int, _ProcEntry]:
    # Reap children that have ended: otherwise other processes would see them as zombies.
    _children[:] = [child for child in _children if child.poll() is None]
    found = {}
    for entry in os.listdir("/proc"):
        fields = _read_stat(int(entry)) if entry.isdigit() else None
        if fields is not None and fields[0] not in "ZX":
            pid = int(entry)
            found[pid] = _ProcEntry(pid, int(fields[1]), int(fields[19]), _read_mark(pid))
    return found


def _read_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on, which is the state."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()  # the second, the name, may contain anything


def _read_mark(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    before = f"{MARK}=".encode()
    found = (each for each in environment.split(b"\0") if each.startswith(before))
    mark = next(found, None)
    return None if mark is None else os.fsdecode(mark.removeprefix(before))


def _boot_id() -> str:
    """Which boot of the machine this is: start times are comparable only within one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _send(to: _ProcEntry, signum: signal.Signals) -> None:
    """Send a signal to a process, unless another process has its pid by now."""
    try:
        handle = os.pidfd_open(to.pid)
    except OSError:
        return
    try:
        # The handle belongs to whichever process has the pid now: compare the start times.
        fields = _read_stat(to.pid)
        if fields is not None and int(fields[19]) == to.started:
            signal.pidfd_send_signal(handle, signum)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
