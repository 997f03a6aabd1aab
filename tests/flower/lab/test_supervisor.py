"""Which nodes the supervisor starts again. On real processes: tests/flower/test_all_parties.py."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cafe.flower.lab import processes, supervisor
from cafe.flower.lab.paths import LabPaths, LabState, Node
from cafe.flower.node_heartbeat import STALE, heartbeat_file

STATE = LabState(True, False, 1, {"node-1": Node(0, 1, 2)})


@pytest.fixture
def paths(tmp_path: Path) -> LabPaths:
    made = LabPaths(tmp_path)
    made.create()
    return made


@pytest.fixture
def pid(paths: LabPaths) -> Iterator[int]:
    """A process that is recorded as a node."""
    node = processes.start("node-1", ["sleep", "3600"], {}, "mark", paths.log("node-1"))
    paths.save_processes([node])
    yield node.pid
    processes.end([node])


def write(paths: LabPaths, pid: int, age: float = 0.0, ended: str = "") -> None:
    file = heartbeat_file(paths.home("node-1"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"pid": pid, "at": time.monotonic() - age, "ended": ended}))


def test_node_without_recent_heartbeats_is_unresponsive(paths: LabPaths, pid: int) -> None:
    assert supervisor.find_unresponsive(paths, STATE) == {}  # it is still starting
    write(paths, pid)
    assert supervisor.find_unresponsive(paths, STATE) == {}
    write(paths, pid, STALE + 60.0)
    why = supervisor.find_unresponsive(paths, STATE)["node-1"]
    assert why.startswith("it is alive, but has sent no heartbeat for 24")
    write(paths, pid + 1, STALE + 60.0)  # of an earlier process
    assert supervisor.find_unresponsive(paths, STATE) == {}


def test_node_that_was_killed_is_left_alone(paths: LabPaths, pid: int) -> None:
    write(paths, pid, STALE + 60.0)
    processes.end(paths.load_processes())
    assert supervisor.find_unresponsive(paths, STATE) == {}
    write(paths, pid, ended="its loop has ended")
    assert supervisor.find_unresponsive(paths, STATE) == {
        "node-1": "it has ended: its loop has ended"
    }


def test_nothing_is_started_without_a_superlink(paths: LabPaths, pid: int) -> None:
    write(paths, pid, STALE + 60.0)
    supervisor.restart_unresponsive(paths)  # there is no state
    paths.save_state(STATE)
    supervisor.restart_unresponsive(paths)
    assert [each.pid for each in paths.load_processes()] == [pid]
    assert subprocess.run(["kill", "-0", str(pid)]).returncode == 0
