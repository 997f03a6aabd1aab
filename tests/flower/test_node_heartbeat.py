"""The file of a node's heartbeats, and the health check that reads it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cafe.flower.node_heartbeat import STALE, heartbeat_file, read_heartbeat, write_heartbeat

CHECK = [sys.executable, "-m", "cafe.flower.node_heartbeat"]


def test_heartbeat_is_written_and_read(tmp_path: Path) -> None:
    file = heartbeat_file(tmp_path / "home")
    assert read_heartbeat(file) is None
    write_heartbeat(file)
    found = read_heartbeat(file)
    assert found is not None
    assert found.pid == os.getpid()
    assert 0.0 <= found.age < STALE
    assert not found.ended
    write_heartbeat(file, "why")
    last = read_heartbeat(file)
    assert last is not None
    assert last.ended == "why"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "at": 0, "x": 1}'])
def test_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    file = heartbeat_file(tmp_path)
    file.write_text(text)
    assert read_heartbeat(file) is None


def test_folder_that_cannot_be_written_does_not_end_a_node(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_heartbeat(tmp_path / "file" / "heartbeat")


def test_systemd_is_told_of_each_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("notify")
        systemd.settimeout(60.0)
        monkeypatch.setenv("NOTIFY_SOCKET", "notify")
        write_heartbeat(tmp_path / "heartbeat")
        assert systemd.recv(100) == b"WATCHDOG=1"
        systemd.setblocking(False)
        write_heartbeat(tmp_path / "heartbeat", "why")
        with pytest.raises(BlockingIOError):
            systemd.recv(100)


def test_health_check_ends_only_an_unresponsive_node(tmp_path: Path) -> None:
    node = subprocess.Popen(["sleep", "3600"])
    try:
        env = {**os.environ, "FLWR_HOME": str(tmp_path)}
        assert subprocess.run(CHECK, env=env).returncode == 0  # it has not begun
        for age, code in ((0.0, 0), (STALE + 60.0, 1)):
            last = {"pid": node.pid, "at": time.monotonic() - age}
            heartbeat_file(tmp_path).write_text(json.dumps(last))
            done = subprocess.run(CHECK, env=env, capture_output=True, text=True)
            assert done.returncode == code
            assert (node.poll() is None) == (code == 0)
        assert done.stdout.startswith("The node has sent no heartbeat for 24")
    finally:
        node.kill()
        node.wait()
