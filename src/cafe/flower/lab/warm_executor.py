"""Run a SuperNode's tasks in forks of one warm process, instead of starting Python for each.

Flower starts a new interpreter for every message, and its imports take seconds of CPU time.
``python -m cafe.flower.lab.warm_executor`` replaces ``flower-superexec``. It imports Flower's
client side once, forks a helper before there is any thread or connection, and then runs Flower's
own loop. For each task the helper forks itself; the fork runs the task and exits. To an app its
process looks new, except that modules are already imported.

This module uses internals of Flower. tests/flower/lab/test_warm_executor.py fails if a release
of Flower changes them.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import json
import math
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
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from cafe.flower.app_install import install_completely
from cafe.flower.retry_interceptor import RetryInterceptor, install
from cafe.flower.task_signal import TaskSignal

if TYPE_CHECKING:
    from flwr.supercore.constant import TaskType
    from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult

LOOP = "flwr.supercore.superexec.run_superexec"
TASK = "flwr.supernode.runtime.run_clientapp"
MAX_REQUEST = 1 << 16  # bytes of a message to the helper
GRACE_PERIOD = 3.0  # seconds between SIGTERM and SIGKILL for tasks whose node has ended


class WarmExecutor:
    """An executor for Flower's loop that passes the tasks of clients to the warm helper."""

    def __init__(self, helper: socket.socket) -> None:
        from flwr.supercore.superexec.executor import SubprocessExecutor

        self._helper = helper
        self._cold = SubprocessExecutor()

    def launch(self, spec: ExecutionSpec) -> LaunchResult:
        """Start a client's task in the helper.

        Other tasks, and all tasks after the helper has ended, are started as Flower does.
        """
        from flwr.supercore.constant import TaskType
        from flwr.supercore.superexec.executor import LaunchResult

        if spec.task_type == TaskType.CLIENT_APP:
            try:
                self._helper.send(json.dumps(asdict(spec)).encode())
                return LaunchResult.accepted()
            except OSError:
                print(
                    "The warm helper has ended: this task starts in a new Python process.",
                    flush=True,
                )
        return self._cold.launch(spec)

    def get_eligible_capacity(
        self, supported_task_types: set[TaskType], **_: Any
    ) -> tuple[set[TaskType], set[str]]:
        return supported_task_types, set()

    def wait_for_capacity(self, task_type: TaskType | None = None, **_: Any) -> None:
        """Return at once: the number of tasks is not limited."""

    def reconcile(self) -> None:
        """Do nothing: no state is kept between tasks."""

    def close(self) -> None:
        """Close the connection to the helper, which then ends its tasks and exits."""
        self._helper.close()


def main() -> None:
    """Import modules, fork the helper, and run Flower's loop with it."""
    given = _arguments()
    loop: Any = importlib.import_module(LOOP)
    for name in (TASK, "numpy", *given.modules):
        importlib.import_module(name)
    install(RetryInterceptor(math.inf))  # also in the forks
    install_completely()
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)  # one packet is one task
    gc.freeze()  # keeps the imported modules in memory that the forks share
    if os.fork() == 0:
        ours.close()
        _run_helper(theirs)
    theirs.close()
    _exit_with(given.parent_pid)
    executor = WarmExecutor(ours)
    loop.get_executor = lambda *_, **__: executor
    if given.signal:  # the loop's only pause is that between two requests for a task
        loop.time = SimpleNamespace(sleep=TaskSignal(given.signal).wait)
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
    parser.add_argument("--signal", type=Path, help="A pipe by which the node announces tasks.")
    parser.add_argument("--root-certificates")
    parser.add_argument("--superexec-auth-secret-file")
    parser.add_argument("modules", nargs="*", help="Modules of apps to import in advance.")
    return parser.parse_args()


def _exit_with(pid: int) -> None:
    """Interrupt this process when another one has ended.

    Flower itself checks whether the pid exists, which is still true for a zombie process.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise SystemExit("The node ended before its task runner was ready.") from None

    def watch() -> None:
        select.select([handle], [], [])
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def _run_helper(requests: socket.socket) -> NoReturn:
    """Fork a process for each request, until the other end is closed."""
    running: dict[int, int] = {}  # the pid of each task, by its pidfd
    waiting = selectors.DefaultSelector()
    waiting.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is not requests:
                handle = key.fd
                os.waitpid(running.pop(handle), 0)
                waiting.unregister(handle)
                os.close(handle)
            elif message := requests.recv(MAX_REQUEST):
                pid = os.fork()
                if pid == 0:
                    waiting.close()
                    for handle in running:
                        os.close(handle)
                    requests.close()
                    _run_task(json.loads(message))
                handle = os.pidfd_open(pid)
                running[handle] = pid
                waiting.register(handle, selectors.EVENT_READ)
            else:
                _end_tasks(running)


def _run_task(spec: dict[str, Any]) -> NoReturn:
    """Run one task in this process, and exit."""
    os.setpgid(0, 0)
    sys.modules["numpy"].random.seed()  # otherwise all tasks of a node would draw the same numbers
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
    # The interpreter's own steps at exit, without freeing its objects: that would take four times
    # as long as everything else in the fork.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_tasks(running: dict[int, int]) -> NoReturn:
    """End the remaining tasks, and exit."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        for handle in running:
            signal.pidfd_send_signal(handle, signum)
        until = time.monotonic() + GRACE_PERIOD
        while running and time.monotonic() < until:
            ended, _, _ = select.select([*running], [], [], until - time.monotonic())
            for handle in ended:
                os.waitpid(running.pop(handle), 0)
    os._exit(0)


if __name__ == "__main__":
    main()
