"""A SuperNode tells its task runner when there is a task, so that the runner need not ask often.

A task runner asks its node for tasks over HTTPS. With 50 nodes on one machine that ask five times a
second, this alone takes more than a core. A node that ``cafe.flower.program`` runs writes a byte to
a named pipe in its Flower folder (FLWR_HOME) instead, whenever it has stored a message; the runner
waits for this byte. Without a runner that listens, nothing is written.

This module uses an internal function of Flower; tests/flower/test_task_signal.py fails if a release
of Flower changes it. Then a runner finds tasks by asking, which it still does every few seconds.
"""

from __future__ import annotations

import functools
import importlib
import os
import select
from contextlib import suppress
from pathlib import Path
from typing import Any

NAME = "new-task"  # of the pipe, in the Flower folder of a node
LOOP = "flwr.supernode.start_client_internal"
STORE = "_pull_and_store_message"  # returns None if there is no message


def task_pipe(home: Path) -> Path:
    """The pipe of a node, in its Flower folder."""
    return home / NAME


class TaskSignal:
    """The end of the pipe that a task runner reads.

    Args:
        pipe: where it is, or is to be made.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from cafe.flower.task_signal import TaskSignal, announce_task
        >>> pipe = Path(tempfile.mkdtemp()) / "new-task"
        >>> announce_task(pipe)  # no runner listens: no effect
        >>> signal = TaskSignal(pipe)
        >>> announce_task(pipe)
        >>> signal.wait(60.0), signal.wait(0.0)
        (True, False)
    """

    def __init__(self, pipe: Path) -> None:
        pipe.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkfifo(pipe, 0o600)
        # Also opened for writing: otherwise it would be at its end whenever no node has it open.
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)

    def wait(self, seconds: float) -> bool:
        """Wait for a task for at most these seconds; return whether one was announced."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        return bool(ready and os.read(self._pipe, 1 << 16))


def announce_task(pipe: Path) -> None:
    """Tell the runner that listens to a pipe, if there is one, that there is a task."""
    with suppress(OSError):
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(handle, b"1")
        finally:
            os.close(handle)


def announce_tasks(pipe: Path) -> None:
    """Have the SuperNode of this process announce each message that it has stored."""
    loop: Any = importlib.import_module(LOOP)
    store = getattr(loop, STORE, None)
    if store is None:
        return

    @functools.wraps(store)
    def store_and_announce(*args: Any, **kwargs: Any) -> Any:
        stored = store(*args, **kwargs)
        if stored is not None:
            announce_task(pipe)
        return stored

    setattr(loop, STORE, store_and_announce)
