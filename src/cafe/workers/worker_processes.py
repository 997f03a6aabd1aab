"""Calls of a function in several processes of this machine, which end when this process ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def run_in_processes(
    work: Callable[[Argument], Result], given: Sequence[Argument], workers: int
) -> Iterator[tuple[int, Result]]:
    """Call a function with each argument, and yield its index and the result when it is known.

    With one worker, the calls are made in this process.

    Args:
        work: the function. It and its arguments must be picklable, to be sent to other processes.
        given: the arguments of the calls.
        workers: the number of processes.

    Raises:
        BrokenExecutor: if a process was killed. All calls that have not been yielded are lost.

    Example:
        >>> from cafe.workers.worker_processes import run_in_processes
        >>> dict(run_in_processes(abs, [-3, 4], workers=1))
        {0: 3, 1: 4}
    """
    if workers == 1:
        yield from ((index, work(argument)) for index, argument in enumerate(given))
        return
    from joblib import Parallel, delayed

    call = delayed(partial(_run_in_worker, work, os.getpid()))
    calls = (call(index, argument) for index, argument in enumerate(given))
    # A batch of several calls would return its results only when all of them are done.
    yield from Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")(calls)


def _run_in_worker(
    work: Callable[[Argument], Result], parent: int, index: int, argument: Argument
) -> tuple[int, Result]:
    """Make one call in a worker process, which ends when its parent ends."""
    _ignore_interrupts()
    _end_with(parent)
    _allow_memory()
    return index, work(argument)


@lru_cache(maxsize=1)
def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes: the parent ends its workers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=1)
def _allow_memory() -> None:
    """Have joblib keep a worker that needs more memory than at first, such as for datasets.

    If psutil is installed, joblib treats 300 MB more as a leak, and replaces the worker.
    """
    executor: Any = sys.modules.get("joblib.externals.loky.process_executor")
    if hasattr(executor, "_USE_PSUTIL"):
        executor._USE_PSUTIL = False


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """End this process soon after its parent ends, even if the parent is killed.

    Otherwise it would keep the run's folder locked, and the run could not be resumed.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)  # like a kill, which a run survives at any time

    # A parent may end before its worker makes the first call: then the thread ends the worker.
    threading.Thread(target=watch, name="cafe-watch", daemon=True).start()
