"""Programs that are started as forks are independent processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cafe.errors import InputError
from cafe.flower.lab import processes
from cafe.flower.lab.fork_server import NAME, ForkServer
from cafe.flower.lab.processes import MARK, Process
from tests.support.flower.waiting import wait_until

PROGRAM = """
import json, os, pathlib, random, sys, time
print("a sentence for the log", flush=True)
said = {"argv": sys.argv, "own": os.environ["OWN"], "mark": os.environ["CAFE_FEDERATION"]}
said |= {"leader": os.getsid(0) == os.getpid(), "random": random.random(), "name": __name__}
said |= {"imported": "colorsys" in sys.modules, "input": sys.stdin.read()}
said |= {"files": len(os.listdir("/proc/self/fd"))}
pathlib.Path(sys.argv[1]).write_text(json.dumps(said))
time.sleep(3600)
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Iterator[str]:
    """The prefix of the marks of all processes of a test."""
    yield f"{tmp_path}:"
    processes.end(processes.find_unrecorded([], f"{tmp_path}:"))


def server(tmp_path: Path, prefix: str) -> ForkServer:
    env = {**os.environ, "OWN": "server", "PYTHONUNBUFFERED": "1"}
    return ForkServer(env, prefix, tmp_path / "server.log")


def start(using: ForkServer, tmp_path: Path, prefix: str, name: str) -> Process:
    program = tmp_path / "program.py"
    if not program.exists():  # an earlier fork may be reading it
        program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(tmp_path / f"{name}.json"), "more"]
    env = {**os.environ, "OWN": name}
    return using.start(name, command, env, prefix + name, tmp_path / f"{name}.log")


def said(tmp_path: Path, name: str) -> dict[str, object]:
    file = tmp_path / f"{name}.json"
    wait_until(lambda: file.exists() and file.stat().st_size > 0)
    return dict(json.loads(file.read_text()))


def test_forks_are_processes_of_their_own(tmp_path: Path, prefix: str) -> None:
    """Each has its arguments, environment, session, log and mark, and outlives the server."""
    names = ["node-1", "node-2", "node-1000-tasks"]
    with server(tmp_path, prefix) as using:
        using.load(["colorsys"])
        made = [start(using, tmp_path, prefix, name) for name in names]
        found = [said(tmp_path, name) for name in names]
    for name, each in zip(names, found, strict=True):
        assert each["argv"] == [
            str(tmp_path / "program.py"),
            str(tmp_path / f"{name}.json"),
            "more",
        ]
        assert (each["own"], each["mark"], each["name"]) == (name, prefix + name, "__main__")
        assert (each["leader"], each["imported"], each["input"]) == (True, True, "")
        assert each["files"] == 4  # the three of every process, and the listed folder
        assert (tmp_path / f"{name}.log").read_text() == "a sentence for the log\n"
    assert len({each["random"] for each in found}) == len(names)
    assert [each.alive for each in processes.refresh(made)] == [True] * 3
    # As if they had not been recorded: /proc shows their own marks, and the server has ended.
    assert {each.name: each.pid for each in processes.find_unrecorded([], prefix)} == {
        each.name: each.pid for each in made
    }
    processes.end(made[:1])
    assert [each.alive for each in processes.refresh(made)] == [False, True, True]


def test_program_given_as_a_module_looks_as_if_it_had_been_executed(
    tmp_path: Path, prefix: str
) -> None:
    with server(tmp_path, prefix) as using:
        command = [sys.executable, "-m", "cafe.flower.node_heartbeat"]
        env = {**os.environ, "FLWR_HOME": str(tmp_path)}
        (tmp_path / "heartbeat").write_text(json.dumps({"pid": 2**22 + 1, "at": -1e9}))
        made = using.start("node-1", command, env, f"{prefix}node-1", tmp_path / "log")
        wait_until(lambda: not processes.exists(made.pid))
    assert "The node has sent no heartbeat" in (tmp_path / "log").read_text()


def test_module_that_cannot_be_imported_is_left_to_its_program(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "noisy_module.py").write_text("print('hello')\nraise ValueError('broken')\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with ForkServer(env, prefix, tmp_path / "server.log") as using:
        using.load(["no_such_module", "noisy_module"])  # what it prints is no answer
        start(using, tmp_path, prefix, "node-1")
        assert said(tmp_path, "node-1")["own"] == "node-1"


def test_server_that_has_ended_is_an_error_with_its_log(tmp_path: Path, prefix: str) -> None:
    with server(tmp_path, prefix) as using:
        found = processes.find_unrecorded([], prefix)
        assert [each.name for each in found] == [NAME]
        processes.end(found)
        with pytest.raises(InputError, match="The process that starts the nodes has ended"):
            using.load(["colorsys"])


def test_server_ends_with_the_command_that_started_it(tmp_path: Path, prefix: str) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from cafe.flower.lab.fork_server import ForkServer\n"
        "server = ForkServer(os.environ, sys.argv[1], Path(sys.argv[2]))\n"
        "server.load(['colorsys'])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    log = str(tmp_path / "log")
    command = [sys.executable, "-c", script, prefix, log]
    processes.start("up", command, dict(os.environ), f"{tmp_path}-up", tmp_path / "up.log")
    wait_until(lambda: Path(log).exists() and not processes.find_unrecorded([], str(tmp_path)))


def test_marks_are_longer_than_those_of_nodes() -> None:
    assert len(NAME) > len("node-1000000-tasks")
    assert MARK.isidentifier()
