"""A federation of real processes: which nodes are accepted, restarted and ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="a real federation needs Flower: pip install 'cafe-fl[flower]'")

from cafe import cli
from cafe.errors import InputError
from cafe.flower.lab import Lab, commands, keys, processes
from cafe.flower.lab.paths import free_ports
from tests.support.flower.database import wait_for_end
from tests.support.flower.trial import gone
from tests.support.flower.waiting import LIMIT, wait_until

APP = Path(__file__).parents[2] / "support" / "flower" / "trivial_app"
pytestmark = pytest.mark.federation
LISTENS = "0A"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes with TLS and keys, started once for the whole file."""
    folder = tmp_path_factory.mktemp("secure") / "app"
    shutil.copytree(APP, folder)
    lab = Lab(folder)
    try:
        lab.up(2)
        yield lab
    finally:
        lab.down()


def all_pids(lab: Lab) -> list[int]:
    return [pid for each in lab.processes() for pid in (each.pid, *each.tasks)]


def ids(lab: Lab) -> dict[str, str]:
    return {node["name"]: node["id"] for node in lab.status()["nodes"]}


def rows(lab: Lab, folder: Path, **config: Any) -> list[dict[str, Any]]:
    """Run the app and return what it wrote."""
    run = lab.submit(folder=str(folder), **config)
    assert wait_for_end(lab, run) == "completed", lab.run_log(run)
    assert lab.run_status(run) == "finished:completed"
    found: list[dict[str, Any]] = json.loads((folder / "rows.json").read_text())
    return found


def test_nodes_are_online_with_their_names(lab: Lab) -> None:
    nodes = lab.status()["nodes"]
    assert [(node["name"], node["online"]) for node in nodes] == [
        ("node-1", True),
        ("node-2", True),
    ]
    assert {each.name for each in lab.processes() if each.alive} == {
        *("superlink", "node-1", "node-1-tasks", "node-2", "node-2-tasks", "supervisor")
    }


def test_private_keys_are_private(lab: Lab) -> None:
    files = [*lab.paths.keys.glob("*.key"), lab.paths.keys / "tasks.secret"]
    assert len(files) == 4
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(lab.paths.keys.stat().st_mode) == 0o700
    assert ".federation/" in (lab.paths.folder / ".gitignore").read_text()


def test_nothing_listens_beyond_loopback(lab: Lab) -> None:
    sockets = set()
    for pid in all_pids(lab):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(handle) if handle.is_symlink() else ""
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and words[9] in sockets:
                found.append(words[1].split(":")[0])
    assert found == ["0100007F"] * 3  # the SuperLink and two nodes, in the kernel's spelling


def test_unregistered_nodes_are_rejected(lab: Lab, tmp_path: Path) -> None:
    before = lab.node_statuses()
    state = lab.paths.load_state()
    assert state is not None
    keys.make_node_key(tmp_path / "stranger.key")
    ca = ["--root-certificates", str(lab.paths.keys / "ca.pem")]
    tries = {
        "with a key that is not registered": [
            *(*ca, "--auth-supernode-private-key", str(tmp_path / "stranger.key"))
        ],
        "without a key": ca,
        "without TLS": ["--insecure"],
        "without the authority's certificate": [],
    }
    ports = free_ports(len(tries))
    running = {
        how: subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("flower-supernode")), *words),
                *("--superlink", f"127.0.0.1:{state.port}", "--port", str(port)),
                *("--max-retries", "1", "--max-wait-time", "2", "--isolation", "process"),
            ],
            env={**commands.environment(lab.paths, "stranger"), "FLWR_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for (how, words), port in zip(tries.items(), ports, strict=True)
    }
    for how, process in running.items():
        try:
            said, _ = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        assert "SuperNode ID" not in said, how
        assert process.returncode != 0, how
    assert lab.node_statuses() == before


def test_messages_are_answered_in_warm_processes(lab: Lab, tmp_path: Path) -> None:
    found = rows(lab, tmp_path, messages=2)
    assert sorted((row["name"], row["partition"]) for row in found) == [
        *[("node-1", 0)] * 2,
        *[("node-2", 1)] * 2,
    ]
    assert all("warm" in row["program"] for row in found)
    assert len({row["pid"] for row in found}) == 4  # a process for each
    assert len({row["random"] for row in found}) == 4  # and none repeats another's numbers


def test_a_run_that_fails_says_why_before_its_log(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = lab.paths.folder / "pyproject.toml"
    settings.write_text(settings.read_text().replace("fail = false", "fail = true"))
    monkeypatch.setattr(sys, "argv", ["cafe", "federate", "run", str(lab.paths.folder)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    said = capsys.readouterr().err.splitlines()
    assert said[1:3] == [
        "The run ended before it had finished: RuntimeError: it was told to fail.",
        "The end of the run's log:",
    ]
    assert "Traceback (most recent call last):" in said
    assert said[-1] == f"Resume: cafe federate run {lab.paths.folder}"
    assert not any("SuperLink's log" in line for line in said)


def test_killed_node_restarts_with_the_same_id(lab: Lab) -> None:
    before = ids(lab)
    lab.kill("node-1", signal.SIGKILL)
    assert not any(each.alive or each.tasks for each in lab.processes() if "node-1" in each.name)
    with sqlite3.connect(lab.paths.database, timeout=LIMIT) as database:
        # As if the minute after which the SuperLink counts it as offline had passed.
        database.execute("UPDATE node SET online_until = ? WHERE status = 'online'", (time.time(),))
    database.close()
    lab.start("node-1")
    assert ids(lab) == before
    assert lab.status()["nodes"][0]["online"]


def test_only_what_is_missing_is_started(lab: Lab) -> None:
    before = {each.name: each.pid for each in lab.processes()}
    lab.kill("node-2-tasks", signal.SIGKILL)
    said: list[str] = []
    lab.up(1, say=said.append)
    assert said[-1].startswith("More nodes are running: node-2. To have fewer:")
    lab.up()
    after = {each.name: each.pid for each in lab.processes()}
    assert {name for name in after if after[name] != before[name]} == {"node-2-tasks"}
    assert all(each.alive for each in lab.processes())


def test_unrecorded_node_is_restarted(lab: Lab) -> None:
    """As if ``up`` had been killed in the moment between starting a node and recording it."""
    recorded = lab.paths.load_processes()
    lab.paths.save_processes([each for each in recorded if "node-2" not in each.name])
    assert {each.name for each in lab.processes()} == {each.name for each in recorded}
    lab.up()
    old = {each.name: each.pid for each in recorded}
    new = {each.name: each.pid for each in lab.processes()}
    assert {name for name in new if new[name] != old[name]} == {"node-2", "node-2-tasks"}
    assert not any(processes.exists(old[name]) for name in ("node-2", "node-2-tasks"))
    assert lab.status()["nodes"][1]["online"]


def test_invalid_commands_are_refused(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="running without --insecure"):
        lab.up(insecure=True)
    with pytest.raises(InputError, match="There is no process 'node-9'"):
        lab.kill("node-9")
    with pytest.raises(InputError, match="--nodes must be at least 1"):
        lab.up(0)
    with pytest.raises(InputError, match=r"no key 'nonsense' .* Known: fail, folder"):
        lab.submit(nonsense=1)
    with pytest.raises(InputError, match="contains no Flower app"):
        Lab(tmp_path).up()
    with pytest.raises(InputError, match="There is no federation"):
        Lab(tmp_path).submit()


def test_down_ends_all_processes_of_the_lab_and_no_others(lab: Lab) -> None:
    """Even a frozen node and children of a killed SuperLink, but no new process with an old pid."""
    state = lab.paths.load_state()
    assert state is not None
    stranger = subprocess.Popen(["sleep", "3600"])
    try:
        file = lab.paths.state_folder / "processes.json"
        written = json.loads(file.read_text())
        wrong = {**written[0], "name": "node-3", "pid": stranger.pid, "mark": "another"}
        file.write_text(json.dumps([*written, wrong]))
        lab.kill("node-2", signal.SIGSTOP)
        known = {each.name: each for each in lab.processes()}
        assert not known["node-3"].alive
        os.kill(known["superlink"].pid, signal.SIGKILL)
        ended = all_pids(lab)
        lab.down()
        assert stranger.poll() is None
        for pid in set(ended) - {stranger.pid}:
            wait_until(partial(gone, pid))
        assert lab.down() == []
    finally:
        stranger.kill()
        stranger.wait()
    for port in (state.port, *(node.port for node in state.nodes.values())):
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))


def test_lab_without_tls_and_with_cold_start(tmp_path: Path) -> None:
    shutil.copytree(APP, tmp_path / "app")
    lab = Lab(tmp_path / "app")
    try:
        lab.up(1, insecure=True, cold=True)
        assert not [*lab.paths.keys.glob("*.pem")]
        found = rows(lab, tmp_path, messages=1)
        assert "flwr-clientapp" in found[0]["program"]
    finally:
        lab.down()
    assert lab.processes() == []
