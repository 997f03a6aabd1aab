"""The internals of Flower that the warm start uses, and the helper that forks."""

from __future__ import annotations

import inspect
import json
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="a real federation needs Flower: pip install 'cafe-fl[flower]'")

from importlib import import_module

from flwr.supercore import tls
from flwr.supercore.constant import TaskType
from flwr.supercore.superexec.executor import (
    ExecutionSpec,
    Executor,
    LaunchResult,
    SubprocessExecutor,
)

from cafe.flower.lab import warm_executor
from tests.support.flower.waiting import LIMIT, wait_until

SPEC = ExecutionSpec(TaskType.CLIENT_APP, "127.0.0.1:1", "token", True, None, False, 1, False, 1)

HELPER = """
import json, os, socket, sys, threading, types
import flwr.supercore.tls
import numpy
from cafe.flower.lab import warm_executor
from tests.support.flower.waiting import LIMIT, wait_until
def run_clientapp(token, **spec):
    with open(os.path.join(sys.argv[1], token), "w") as file:
        file.write(f"{os.getpgid(0) == os.getpid()} {numpy.random.random()}")
    if token == "last": threading.Event().wait()
    raise SystemExit
sys.modules[warm_executor.TASK] = types.SimpleNamespace(run_clientapp=run_clientapp)
warm_executor.GRACE_PERIOD = 0.5
warm_executor._run_helper(socket.socket(fileno=int(sys.argv[2])))
"""


def test_flower_has_the_internals_that_the_warm_executor_uses() -> None:
    """If this fails, a release of Flower has changed: adapt warm_executor.py, or start cold."""
    loop, task = import_module(warm_executor.LOOP), import_module(warm_executor.TASK)
    used = {"runtime_api_address", "insecure", "root_certificates_path", "superexec_auth_secret"}
    used |= {"runtime_dependency_install"}
    assert used <= {*inspect.signature(loop.run_superexec).parameters}
    assert "get_executor(" in inspect.getsource(loop.run_superexec)
    assert callable(loop.get_executor)
    used = {"runtime_api_address", "token", "insecure", "certificates", "parent_pid"}
    used |= {"runtime_dependency_install"}
    assert {*inspect.signature(task.run_clientapp).parameters} == used
    used = {"runtime_api_address", "token", "insecure", "root_certificates_path", "parent_pid"}
    used |= {"runtime_dependency_install", "task_type"}
    assert used <= {field.name for field in fields(ExecutionSpec)}
    assert [*inspect.signature(tls.validate_and_resolve_root_certificates).parameters][1] == (
        "insecure"
    )


def test_warm_executor_implements_the_executor_interface() -> None:
    def asked(of: type) -> dict[str, list[str]]:
        public = {name: each for name, each in vars(of).items() if not name.startswith("_")}
        return {name: [*inspect.signature(each).parameters] for name, each in public.items()}

    assert {*asked(Executor)} == {*asked(warm_executor.WarmExecutor)}
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with ours, theirs:
        executor: Executor = warm_executor.WarmExecutor(ours)
        assert executor.get_eligible_capacity({TaskType.CLIENT_APP}, insecure=True) == (
            {TaskType.CLIENT_APP},
            set(),
        )
        executor.wait_for_capacity(TaskType.CLIENT_APP, fab_hash=None, insecure=True)
        executor.reconcile()
        assert executor.launch(SPEC) == LaunchResult.accepted()
        sent = json.loads(theirs.recv(10_000))
        assert sent["token"] == "token"
        assert sent["parent_pid"] == 1


def test_tasks_start_cold_without_the_helper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launched: list[Any] = []

    def launch(_: SubprocessExecutor, spec: ExecutionSpec) -> LaunchResult:
        launched.append(spec)
        return LaunchResult.accepted()

    monkeypatch.setattr(SubprocessExecutor, "launch", launch)
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    theirs.close()
    executor = warm_executor.WarmExecutor(ours)
    executor.launch(SPEC)
    executor.close()
    assert launched == [SPEC]
    assert "starts in a new Python process" in capsys.readouterr().out


def test_hundreds_of_tasks_run_in_separate_processes(tmp_path: Path) -> None:
    """Each in its own process and group, with its own random numbers; no process remains."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            helper = subprocess.Popen(
                [sys.executable, "-c", HELPER, str(tmp_path), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
            )
        keys = ("runtime_api_address", "insecure", "root_certificates_path", "parent_pid")
        spec: dict[str, Any] = dict.fromkeys(keys) | {"runtime_dependency_install": False}
        spec["insecure"] = True
        names = [*(f"task-{k}" for k in range(300)), "last"]
        for k, name in enumerate(names):
            ours.send(json.dumps({**spec, "token": name}).encode())
            _wait_for(tmp_path, k - 3)  # a few at a time
        _wait_for(tmp_path, len(names))
    helper.wait(timeout=LIMIT)
    said = [(tmp_path / name).read_text().split() for name in names]
    assert {own_group for own_group, _ in said} == {"True"}
    assert len({number for _, number in said}) == len(names)


def _wait_for(folder: Path, files: int) -> None:
    """Wait until this many files are written: a file is empty until its task closes it."""

    def written() -> bool:
        return sum(path.stat().st_size > 0 for path in folder.iterdir()) >= files

    wait_until(written, lambda: f"{files} files", pause=0.002)
