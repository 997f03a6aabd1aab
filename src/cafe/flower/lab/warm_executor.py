"""Run a SuperNode's tasks in copies of one warm process, instead of starting Python for each.

Flower starts a fresh interpreter for every message, and imports cost it seconds of computing.
``python -m cafe.flower.lab.warm_executor`` stands in for ``flower-superexec``: it imports Flower's
client side once, forks a helper while there is no thread and no connection yet, and then runs
Flower's own loop. For each task the helper forks itself; the copy runs the task and ends. To an
app it is as if its process were new, except that its imports are done.

This is the only module that leans on Flower's inner workings, and tests/flower/lab/test_warm.py
fails if a release changes what is used here.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from flwr.supercore.constant import TaskType
    from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult

LOOP = "flwr.supercore.superexec.run_superexec"
TASK = "flwr.supernode.runtime.run_clientapp"
LARGEST = 1 << 16  # bytes of a message to the helper
PATIENCE = 3.0  # seconds that tasks have to end once their node is gone


class WarmExecutor:
    """What Flower asks to start tasks; it passes those of clients to the warm helper."""

    def __init__(self, helper: socket.socket) -> None:
        from flwr.supercore.superexec.executor import SubprocessExecutor

        self._helper = helper
        self._cold = SubprocessExecutor()

    def launch(self, spec: ExecutionSpec) -> LaunchResult:
        """Start a task; one that is no client's, or that the helper cannot take, as Flower does."""
        from flwr.supercore.constant import TaskType
        from flwr.supercore.superexec.executor import LaunchResult

        if spec.task_type == TaskType.CLIENT_APP:
            try:
                self._helper.send(json.dumps(asdict(spec)).encode())
                return LaunchResult.accepted()
            except OSError:
                print("The warm helper is gone: this task starts cold.", flush=True)
        return self._cold.launch(spec)

    def get_eligible_capacity(
        self, supported_task_types: set[TaskType], **_: Any
    ) -> tuple[set[TaskType], set[str]]:
        """Every kind of task is welcome."""
        return supported_task_types, set()

    def wait_for_capacity(self, task_type: TaskType | None = None, **_: Any) -> None:
        """There is always room."""

    def reconcile(self) -> None:
        """Nothing is kept between tasks."""

    def close(self) -> None:
        """Let the helper go; it ends its tasks."""
        self._helper.close()


def main() -> None:
    """Warm up, fork the helper, and run Flower's loop with it."""
    given = _arguments()
    loop: Any = importlib.import_module(LOOP)
    for name in (TASK, "numpy", *given.modules):
        importlib.import_module(name)
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)  # one message, one task
    gc.freeze()  # what is there stays shared between the copies
    if os.fork() == 0:
        ours.close()
        _help(theirs)
    theirs.close()
    _end_with(given.parent_pid)
    executor = WarmExecutor(ours)
    loop.get_executor = lambda *_, **__: executor
    secret = given.superexec_auth_secret_file
    loop.run_superexec(
        runtime_api_address=given.runtime_api_address,
        insecure=given.root_certificates is None,
        root_certificates_path=given.root_certificates,
        superexec_auth_secret=Path(secret).read_bytes() if secret else None,
        runtime_dependency_install=False,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a SuperNode's tasks in warm processes.")
    parser.add_argument("--runtime-api-address", required=True)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument("--root-certificates")
    parser.add_argument("--superexec-auth-secret-file")
    parser.add_argument("modules", nargs="*", help="Modules that apps import, imported once.")
    return parser.parse_args()


def _end_with(pid: int) -> None:
    """Interrupt this process once another has ended.

    Flower's own way asks whether the pid exists, which stays true while nobody has taken leave of
    the dead.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise SystemExit("The node has ended before its tasks could be served.") from None

    def watch() -> None:
        select.select([handle], [], [])
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def _help(requests: socket.socket) -> NoReturn:
    """Fork a copy for each message that comes, until the other end is closed."""
    running: dict[int, int] = {}  # a handle on each task, and its pid
    waiting = selectors.DefaultSelector()
    waiting.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is not requests:
                handle = key.fd
                os.waitpid(running.pop(handle), 0)
                waiting.unregister(handle)
                os.close(handle)
            elif message := requests.recv(LARGEST):
                pid = os.fork()
                if pid == 0:
                    waiting.close()
                    for handle in running:
                        os.close(handle)
                    requests.close()
                    _run(json.loads(message))
                handle = os.pidfd_open(pid)
                running[handle] = pid
                waiting.register(handle, selectors.EVENT_READ)
            else:
                _leave(running)


def _run(spec: dict[str, Any]) -> NoReturn:
    """Be the process of one task."""
    os.setpgid(0, 0)
    sys.modules["numpy"].random.seed()  # or every task of a node would draw the same numbers
    tls = importlib.import_module("flwr.supercore.tls")
    try:
        sys.modules[TASK].run_clientapp(
            runtime_api_address=spec["runtime_api_address"],
            token=spec["token"],
            insecure=spec["insecure"],
            certificates=tls.validate_and_resolve_root_certificates(
                spec["root_certificates_path"], spec["insecure"]
            ),
            parent_pid=spec["parent_pid"],
            runtime_dependency_install=spec["runtime_dependency_install"],
        )
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    # What an interpreter does at its end, except for taking itself to pieces, which would cost
    # four times as much as all the rest of the copy's life.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _leave(running: dict[int, int]) -> NoReturn:
    """End the tasks that are left, and this process."""
    for what in (signal.SIGTERM, signal.SIGKILL):
        for handle in running:
            signal.pidfd_send_signal(handle, what)
        until = time.monotonic() + PATIENCE
        while running and time.monotonic() < until:
            ended, _, _ = select.select([*running], [], [], until - time.monotonic())
            for handle in ended:
                os.waitpid(running.pop(handle), 0)
    os._exit(0)


if __name__ == "__main__":
    main()
