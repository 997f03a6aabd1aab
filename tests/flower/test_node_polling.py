"""How often an idle node asks for work."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.errors import InputError
from cafe.flower import node_polling
from cafe.flower.node_polling import IDLE, VARIABLE, poll_every, read_poll
from cafe.flower.task_signal import LOOP


def test_flower_pauses_as_expected() -> None:
    """Otherwise another version of Flower would not be slowed down."""
    source = Path(str(importlib.import_module(LOOP).__file__)).read_text()
    assert f"time.sleep({IDLE:g})" in source


def test_only_the_pause_of_an_idle_node_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: Any = importlib.import_module(LOOP)
    monkeypatch.setattr(loop, "time", loop.time)
    slept: list[float] = []
    monkeypatch.setattr(node_polling, "time", SimpleNamespace(sleep=slept.append))
    poll_every(20.0)
    loop.time.sleep(0.5)
    for _ in range(50):
        loop.time.sleep(3)
    assert slept[0] == 0.5
    assert all(16.0 <= pause <= 24.0 for pause in slept[1:])
    assert max(slept[1:]) - min(slept[1:]) > 1.0  # nodes do not ask at the same time


def test_read_poll() -> None:
    assert read_poll({}) is None
    assert read_poll({VARIABLE: "0.5"}) == 0.5
    for text in ("no", "0", "-3", "nan", "1000"):
        with pytest.raises(InputError, match="must be a number of seconds from"):
            read_poll({VARIABLE: text})


def test_node_with_a_wrong_value_ends_with_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cafe.flower.program", "flower-supernode", "--help"]
    env = {"FLWR_HOME": str(tmp_path), VARIABLE: "often", "PATH": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{VARIABLE} must be a number of seconds")
    assert "Traceback" not in done.stderr
