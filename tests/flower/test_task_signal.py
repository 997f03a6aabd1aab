"""A node announces its tasks to the task runner that listens."""

from __future__ import annotations

import inspect
import os
import stat
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cafe.flower import task_signal
from cafe.flower.task_signal import TaskSignal, announce_task, announce_tasks, task_pipe
from tests.support.flower.waiting import LIMIT


def test_runner_that_waits_is_woken(tmp_path: Path) -> None:
    pipe = task_pipe(tmp_path / "home")
    signal = TaskSignal(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o600
    woken: list[bool] = []
    runner = threading.Thread(target=lambda: woken.append(signal.wait(LIMIT)))
    runner.start()
    announce_task(pipe)
    runner.join()
    assert woken == [True]


def test_announcements_while_the_runner_is_busy_wake_it_once(tmp_path: Path) -> None:
    pipe = task_pipe(tmp_path)
    signal = TaskSignal(pipe)
    for _ in range(3):
        announce_task(pipe)
    assert signal.wait(LIMIT)
    assert not signal.wait(0.0)


def test_node_without_a_runner_goes_on(tmp_path: Path) -> None:
    pipe = task_pipe(tmp_path)
    announce_task(pipe)  # there is no pipe
    os.mkfifo(pipe)
    announce_task(pipe)  # nobody reads it
    pipe.unlink()
    pipe.write_text("not a pipe")
    announce_task(pipe)


def test_runner_that_was_killed_is_replaced(tmp_path: Path) -> None:
    pipe = task_pipe(tmp_path)
    os.close(TaskSignal(pipe)._pipe)
    announce_task(pipe)
    signal = TaskSignal(pipe)
    assert not signal.wait(0.0)
    announce_task(pipe)
    assert signal.wait(LIMIT)


def test_flower_stores_messages_in_the_function_that_announces_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a release of Flower has changed: adapt task_signal.py."""
    pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")
    loop: Any = import_module(task_signal.LOOP)
    assert f"run_id = {task_signal.STORE}(" in inspect.getsource(loop.start_client_internal)
    runs = [None, 7]
    monkeypatch.setattr(loop, task_signal.STORE, lambda **_: runs.pop(0))
    signal = TaskSignal(task_pipe(tmp_path))
    announce_tasks(task_pipe(tmp_path))
    store = getattr(loop, task_signal.STORE)
    assert store(state=1) is None
    assert not signal.wait(0.0)
    assert store(state=1) == 7
    assert signal.wait(LIMIT)
