"""Where a lab keeps what, and what it remembers between commands."""

from __future__ import annotations

import fcntl
import json
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cafe.errors import FileError
from cafe.flower.lab import processes
from cafe.flower.lab.processes import Process

STATE = ".federation"
LOWEST_PORT = 15000


@dataclass
class Node:
    """One SuperNode: its place among the data's partitions, its port, and Flower's id for it."""

    partition: int
    partitions: int
    port: int
    id: str | None = None


@dataclass
class Memory:
    """What a federation is, on disk between commands."""

    insecure: bool
    cold: bool
    port: int
    nodes: dict[str, Node] = field(default_factory=dict)
    registered: dict[str, str] = field(default_factory=dict)  # ids of keys that are known
    database: bool = False  # whether the SuperLink has come to the end of making it
    run: str | None = None  # the id of the last run
    output: str | None = None  # the folder of its results


class Places:
    """The files of a lab, and the processes that it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.state = self.folder / STATE
        self.keys = self.state / "keys"
        self.logs = self.state / "logs"
        self.database = self.state / "superlink.db"
        self.mark = f"{self.state}:"  # what the marks of all processes here begin with
        self._memory = self.state / "federation.json"
        self._processes = self.state / "processes.json"

    def make(self) -> None:
        """Make the folders, and keep them out of the app and of version control."""
        for folder in (self.state, self.keys, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        ignored = self.folder / ".gitignore"
        lines = ignored.read_text().splitlines() if ignored.exists() else []
        if f"{STATE}/" not in lines:
            ignored.write_text("\n".join([*lines, f"{STATE}/", ""]))

    def home(self, name: str) -> Path:
        """A process's own Flower folder, as if it had a machine to itself."""
        return self.state / "homes" / name

    def log(self, name: str) -> Path:
        """A process's log."""
        return self.logs / f"{name}.log"

    def key(self, name: str) -> Path:
        """A node's private key; the public one has .pub at its end."""
        return self.keys / f"{name}.key"

    def log_tail(self, name: str, lines: int = 15) -> str:
        """The end of a process's log."""
        path = self.log(name)
        if not path.exists():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time changes a federation."""
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.state / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def recall(self) -> Memory | None:
        """What was remembered, if anything."""
        if not self._memory.exists():
            return None
        with _understood(self._memory):
            kept = json.loads(self._memory.read_text())
            kept["nodes"] = {name: Node(**node) for name, node in kept["nodes"].items()}
            return Memory(**kept)

    def remember(self, memory: Memory) -> None:
        """Keep it for the next command."""
        _replace(self._memory, asdict(memory))

    def recorded(self) -> list[Process]:
        """The processes that were started and not taken down; they may be long gone."""
        if not self._processes.exists():
            return []
        with _understood(self._processes):
            return [Process(**each) for each in json.loads(self._processes.read_text())]

    def record(self, started: list[Process]) -> None:
        """Keep what tells processes from others."""
        known = ("name", "pid", "started", "boot", "mark")
        _replace(self._processes, [{key: getattr(each, key) for key in known} for each in started])

    def processes(self) -> list[Process]:
        """What was started and not taken down as it is now, recorded or not, dead or alive."""
        recorded = self.recorded()
        return processes.look([*recorded, *processes.unrecorded(recorded, self.mark)])

    def alive(self) -> set[str]:
        """The names of the recorded processes that run."""
        return {each.name for each in processes.look(self.recorded()) if each.alive}


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, below those that the system hands out.

    One that it hands out could become the near end of a connection while its listener restarts;
    a node that knocks there could even be connected to itself.
    """
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
        highest = int(text.split()[0])
    except OSError:
        highest = 32768
    if highest <= LOWEST_PORT + 1000:
        highest = 32768
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            held.append(candidate := socket.socket())
            try:
                # The system's generator: two labs that start together must not agree.
                candidate.bind(("127.0.0.1", random.SystemRandom().randrange(LOWEST_PORT, highest)))
            except OSError:
                held.pop().close()
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise FileError(
            path,
            f"the file is not as the lab wrote it: {error}. Delete it, end what is running with "
            "cafe federate down, then delete the folder that the file was in.",
        ) from None


def _replace(path: Path, value: Any) -> None:
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(value, indent=1) + "\n")
    draft.replace(path)
