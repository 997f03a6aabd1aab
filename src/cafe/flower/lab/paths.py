"""The files of a lab, and the state that it keeps between commands."""

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
    """A SuperNode: which partition of the data it has, its port, and Flower's id of it."""

    partition: int
    partitions: int
    port: int
    id: str | None = None


@dataclass
class LabState:
    """A federation's configuration and last run, as stored between commands."""

    insecure: bool
    cold: bool
    port: int
    nodes: dict[str, Node] = field(default_factory=dict)
    registered: dict[str, str] = field(default_factory=dict)  # Flower's ids of registered keys
    database: bool = False  # whether the SuperLink has finished creating its database
    run: str | None = None  # the id of the last run
    output: str | None = None  # the results folder of the last run


class LabPaths:
    """The files of a lab, and the processes that are recorded in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.state_folder = self.folder / STATE
        self.keys = self.state_folder / "keys"
        self.logs = self.state_folder / "logs"
        self.database = self.state_folder / "superlink.db"
        self.mark = f"{self.state_folder}:"  # the prefix of the marks of all processes
        self._state = self.state_folder / "federation.json"
        self._processes = self.state_folder / "processes.json"

    def create(self) -> None:
        """Create the folders, and exclude them from the app and from version control."""
        for folder in (self.state_folder, self.keys, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        ignored = self.folder / ".gitignore"
        lines = ignored.read_text().splitlines() if ignored.exists() else []
        if f"{STATE}/" not in lines:
            ignored.write_text("\n".join([*lines, f"{STATE}/", ""]))

    def home(self, name: str) -> Path:
        """The Flower folder (FLWR_HOME) of a process; each process has its own."""
        return self.state_folder / "homes" / name

    def log(self, name: str) -> Path:
        """The log file of a process."""
        return self.logs / f"{name}.log"

    def key(self, name: str) -> Path:
        """The private key of a node; the public key has the suffix .pub."""
        return self.keys / f"{name}.key"

    def log_tail(self, name: str, lines: int = 15) -> str:
        """The last lines of a process's log."""
        path = self.log(name)
        if not path.exists():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock that lets only one command at a time change a federation."""
        self.state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.state_folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def load_state(self) -> LabState | None:
        """The stored state; None if there is none."""
        if not self._state.exists():
            return None
        with _explain_errors(self._state):
            kept = json.loads(self._state.read_text())
            kept["nodes"] = {name: Node(**node) for name, node in kept["nodes"].items()}
            return LabState(**kept)

    def save_state(self, state: LabState) -> None:
        """Store the state for the next command."""
        _write_json(self._state, asdict(state))

    def load_processes(self) -> list[Process]:
        """The recorded processes, which may have ended."""
        if not self._processes.exists():
            return []
        with _explain_errors(self._processes):
            return [Process(**each) for each in json.loads(self._processes.read_text())]

    def save_processes(self, started: list[Process]) -> None:
        """Record what identifies these processes."""
        known = ("name", "pid", "started", "boot", "mark")
        values = [{key: getattr(each, key) for key in known} for each in started]
        _write_json(self._processes, values)

    def find_processes(self) -> list[Process]:
        """The processes that were not taken down, dead or alive, recorded or not."""
        recorded = self.load_processes()
        return processes.refresh([*recorded, *processes.find_unrecorded(recorded, self.mark)])

    def running(self) -> set[str]:
        """The names of the recorded processes that are alive."""
        return {each.name for each in processes.refresh(self.load_processes()) if each.alive}


def free_ports(count: int) -> list[int]:
    """Free ports of 127.0.0.1, below the range from which the system assigns ports.

    A port of that range could be assigned to an outgoing connection while its listener restarts; a
    node that connects to it could even be connected to itself.
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
                # The system's random numbers: two labs that start together must differ.
                candidate.bind(("127.0.0.1", random.SystemRandom().randrange(LOWEST_PORT, highest)))
            except OSError:
                held.pop().close()
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise FileError(
            path,
            f"the file is not as the lab wrote it: {error}. Delete it, end what is running with "
            "cafe federate down, then delete the folder that contained the file.",
        ) from None


def _write_json(path: Path, value: Any) -> None:
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(value, indent=1) + "\n")
    draft.replace(path)
