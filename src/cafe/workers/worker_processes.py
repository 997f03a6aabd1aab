"""Calls of a function in several processes of this machine, which end when this process ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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

    call = delayed(partial(_with_index, work))
    run = Parallel(
        n_jobs=workers,
        backend="loky",
        batch_size=1,  # several calls would return their results only when all of them are done
        return_as="generator_unordered",
        initializer=start_worker,
        initargs=(os.getpid(),),
    )
    yield from run(call(index, argument) for index, argument in enumerate(given))


def _with_index(
    work: Callable[[Argument], Result], index: int, argument: Argument
) -> tuple[int, Result]:
    return index, work(argument)


def start_worker(parent: int) -> None:
    """Prepare a worker process, before its first call; it ends when its parent ends.

    Example:
        >>> import os
        >>> from concurrent.futures import ProcessPoolExecutor
        >>> from cafe.workers.worker_processes import start_worker
        >>> with ProcessPoolExecutor(1, initializer=start_worker, initargs=(os.getpid(),)) as pool:
        ...     pool.submit(abs, -3).result()
        3
    """
    _ignore_interrupts()
    _end_with(parent)
    _allow_memory()


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes: the parent ends its workers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _allow_memory() -> None:
    """Have joblib keep a worker that needs more memory than at first, such as for datasets.

    If psutil is installed, joblib treats 300 MB more as a leak, and replaces the worker.
    """
    executor: Any = sys.modules.get("joblib.externals.loky.process_executor")
    if hasattr(executor, "_USE_PSUTIL"):
        executor._USE_PSUTIL = False


def _end_with(parent: int) -> None:
    """End this process soon after its parent ends, even if the parent is killed.

    Otherwise it would keep the run's folder locked, and the run could not be resumed.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)  # like a kill, which a run survives at any time

    # A parent may have ended already: then the thread ends the worker at once.
    threading.Thread(target=watch, name="cafe-watch", daemon=True).start()
