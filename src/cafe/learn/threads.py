"""Worker threads, each with one BLAS thread.

A matrix product on several cores synchronises them several times. Independent products, one per
core, synchronise once, at the end, and another program that takes a core delays only that core's
part of the work. So work is split into one share per thread, and BLAS is limited to one thread
while they run. The split depends only on sizes, and sums are taken in the order of the shares:
results are the same to the byte every time.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from math import prod
from queue import SimpleQueue
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import LibController, ThreadpoolController

Floats = NDArray[np.float32]
Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread.

    Entering it inside another one costs almost nothing, so enter it once around a whole run.
    """
    return _OneBlasThread()


def find_blas_again() -> None:
    """Limit also BLAS libraries that were loaded after the first limit. Call it after loading."""
    _OneBlasThread.find_again()


def parallel_map(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """The results of ``work`` for all jobs, computed in this thread and in worker threads."""
    waiting = deque(range(len(jobs)))
    results: dict[int, Result] = {}
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run_waiting() -> None:
        while True:
            try:
                index = waiting.popleft()
            except IndexError:
                return
            ended.put(run(index))

    def run(index: int) -> BaseException | None:
        try:
            # Callers check models for divergence; NumPy's warnings would only repeat it.
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                results[index] = work(jobs[index])
        except BaseException as error:
            return error
        return None

    for _ in jobs[1:]:
        worker_pool().submit(run_waiting)
    run_waiting()
    # Wait for all jobs, even if one has failed: they may still write to the caller's arrays.
    for error in [ended.get() for _ in jobs]:
        if error is not None:
            raise error
    return [results[index] for index in range(len(jobs))]


def split_range(start: int, stop: int, parts: int) -> list[slice]:
    """Split a range into parts whose sizes differ by at most one."""
    ends = [start + (stop - start) * part // max(parts, 1) for part in range(parts + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def split_work(count: int, threads: int, least: int, most: int) -> list[list[slice]]:
    """Split ``range(count)`` into a share per thread, and each share into pieces.

    Args:
        count: how many items there are.
        threads: the largest number of shares.
        least: items that a share has at least: for fewer, a thread costs more than it saves.
        most: items that a piece has at most, so that its arrays fit into the processor's cache.
    """
    shares = split_range(0, count, max(1, min(threads, count // least)))
    return [
        split_range(share.start, share.stop, -(-(share.stop - share.start) // most))
        for share in shares
    ]


def parallel_sum(
    work: Callable[[slice, Floats], None], shares: list[list[slice]], size: int
) -> Floats:
    """The sum of the vectors that ``work(piece, vector)`` fills, over the pieces of all shares."""

    def add_up(pieces: list[slice]) -> Floats:
        total = np.empty(size, np.float32)
        work(pieces[0], total)
        for piece in pieces[1:]:
            more = scratch("more", size)
            work(piece, more)
            total += more
        return total

    total, *others = parallel_map(add_up, shares)
    for other in others:
        total += other
    return total


class Scratch(threading.local):
    """Arrays that a thread reuses: new allocations would take longer than the work on them."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, *shape: int, dtype: type = np.float32) -> NDArray[Any]:
        """This thread's array of that name and shape; its contents are undefined."""
        size = prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size, dtype)
        return kept[:size].reshape(shape)


class _OneBlasThread(AbstractContextManager[None]):
    """Limits BLAS to one thread from entry to exit; the exit may be in another thread.

    Some libraries have one limit for the whole process: it stays in force until all contexts in all
    threads have been left. Others have a limit for each thread that calls them.
    """

    lock = threading.Lock()
    entered: ClassVar[Counter[int]] = Counter()  # the number of open contexts by thread
    before: ClassVar[list[int]] = []  # the limits of the whole process, to be restored

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        with self.lock:
            self._each, shared = _blas()
            if not self.entered.total():
                _OneBlasThread.before = _limit(shared, [1] * len(shared))
            self.entered[self._thread] += 1
        self._own = _limit(self._each, [1] * len(self._each))

    def __exit__(self, *_: object) -> None:
        if threading.get_ident() == self._thread:
            _limit(self._each, self._own)
        with self.lock:
            self.entered[self._thread] -= 1
            if not self.entered.total():
                self.entered.clear()
                _limit(_blas()[1], self.before)

    @classmethod
    def find_again(cls) -> None:
        """Look for the libraries again; those that are new get the limit that is in force."""
        with cls.lock:
            if cls.entered.total():
                _limit(_blas()[1], cls.before)
            _blas.cache_clear()
            if cls.entered.total():
                shared = _blas()[1]
                cls.before = _limit(shared, [1] * len(shared))

    @classmethod
    def after_fork(cls) -> None:
        """Forget the other threads: in a forked child only the current one exists."""
        here, limited, cls.lock = threading.get_ident(), cls.entered.total(), threading.Lock()
        mine = cls.entered[here]
        cls.entered = Counter({here: mine} if mine else {})
        if limited and not mine:
            _limit(_blas()[1], cls.before)


def _limit(libraries: list[LibController], numbers: list[int]) -> list[int]:
    """Set each library's number of threads; returns the numbers before."""
    before = [library.get_num_threads() for library in libraries]
    for library, number in zip(libraries, numbers, strict=True):
        # OpenBLAS lets only one thread change the number and silently ignores the others, until
        # that thread is cleared.
        clear = getattr(library, "clear_controlling_thread", lambda force: None)
        clear(force=True)
        library.set_num_threads(number)
        clear(force=True)
    return before


@cache
def _blas() -> tuple[list[LibController], list[LibController]]:
    """The BLAS libraries of this process: those with a limit per thread, those with one for all.

    Cached, because finding them takes longer than a round of training.
    """
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    shared = [
        library
        for library in found
        if library.internal_api == "openblas" and library.threading_layer != "openmp"
    ]
    return [library for library in found if library not in shared], shared


@cache
def worker_pool() -> ThreadPoolExecutor:
    """The worker threads of this process: one less than cores, at least one."""
    return ThreadPoolExecutor(max(cores() - 1, 1), "cafe-learn")


scratch = Scratch()
if hasattr(os, "register_at_fork"):  # a forked child has the pool's object but not its threads
    os.register_at_fork(after_in_child=worker_pool.cache_clear)
    os.register_at_fork(after_in_child=_OneBlasThread.after_fork)
