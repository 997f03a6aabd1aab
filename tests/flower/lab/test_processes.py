"""Processes are recognised, and found even if they were never recorded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cafe.flower.lab import Lab, processes
from tests.support.flower.waiting import wait_until


def test_process_of_an_earlier_boot_is_not_alive() -> None:
    me = processes._read_stat(1)
    assert me is not None
    old = processes.Process("superlink", 1, int(me[19]), "another start", "mark")
    assert not processes.refresh([old])[0].alive


def test_unrecorded_process_is_found_and_ended(tmp_path: Path) -> None:
    """As if the command that started it had been killed before it recorded the process."""
    pytest.importorskip("flwr", reason="a real federation needs Flower")
    lab, other = Lab(tmp_path / "app"), Lab(tmp_path / "application")
    script = "sleep 3600 & sleep 3600"
    log, env = tmp_path / "log", dict(os.environ)
    for each in (lab, other):
        processes.start("node-1", ["sh", "-c", script], env, f"{each.paths.mark}node-1", log)
    try:
        wait_until(lambda: [len(each.tasks) for each in lab.processes()] == [2])  # both children
        assert [(each.name, each.alive) for each in lab.processes()] == [("node-1", True)]
        assert lab.paths.load_processes() == []
        assert lab.down() == ["node-1"]
        assert lab.processes() == []
        assert other.processes()[0].alive
    finally:
        assert other.down() == ["node-1"]  # though its folder does not even exist
    assert other.down() == []
