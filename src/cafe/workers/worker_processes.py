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

Job = TypeVar("Job")
Done = TypeVar("Done")


def run_in_processes(
    work: Callable[[Job], Done], jobs: Sequence[Job], workers: int
) -> Iterator[tuple[int, Done]]:
    """Call a function for each job, and yield the job's index and the result when it is done.

    With one worker, the calls are made in this process.

    Args:
        work: the function; it and the jobs are sent to other processes, so they must be picklable.
        jobs: the arguments of the calls.
        workers: the number of processes.

    Raises:
        BrokenExecutor: if a process was killed. All calls that have not been yielded are lost.

    Example:
        >>> from cafe.workers.worker_processes import run_in_processes
        >>> dict(run_in_processes(abs, [-3, 4], workers=1))
        {0: 3, 1: 4}
    """
    if workers == 1:
        yield from ((index, work(job)) for index, job in enumerate(jobs))
        return
    from joblib import Parallel, delayed

    call = delayed(partial(_run_in_worker, work))
    calls = (call(index, job) for index, job in enumerate(jobs))
    # A batch of several calls would return its results only when all of them are done.
    parallel = Parallel(
        n_jobs=workers,
        backend="loky",
        batch_size=1,
        return_as="generator_unordered",
        initializer=_start_worker,
        initargs=(os.getpid(),),
    )
    yield from parallel(calls)


def _start_worker(parent: int) -> None:
    """Prepare a new worker process, which may never get a call."""
    _ignore_interrupts()
    _end_with(parent)
    _allow_memory()


def _run_in_worker(work: Callable[[Job], Done], index: int, job: Job) -> tuple[int, Done]:
    """Make one call in a worker process."""
    return index, work(job)


@lru_cache(maxsize=1)
def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes: the parent ends its workers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=1)
def _allow_memory() -> None:
    """Have joblib keep a worker that needs more memory than at first, such as for datasets.

    If psutil is installed, joblib takes 300 MB more for a leak, and replaces the worker.
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
