"""Worker threads that each have the matrix product to themselves.

A product on two cores waits for the slower one several times inside; two products side by side wait
once, at the end, and a core that another program takes costs its share and no more. So work is cut
into shares, one per thread, and BLAS is held to one thread while they run. Which row is in whose
share depends on nothing but sizes, and sums are taken in the order of the shares: the same bytes
every time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from math import prod
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import LibController, ThreadpoolController

Floats = NDArray[np.float32]
Job = TypeVar("Job")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread. Next to free inside another one: enter it once around a run."""
    return _hold


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """Do all jobs, in this thread and in others, whoever is free taking the next."""
    waiting = deque(range(len(jobs)))
    results: dict[int, Result] = {}
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def take_part() -> None:
        # A model that diverges is for the caller to find in its numbers, not in a warning.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            while True:
                try:
                    place = waiting.popleft()
                except IndexError:
                    return
                try:
                    results[place] = work(jobs[place])
                    ended.put(None)
                except BaseException as error:
                    ended.put(error)

    for _ in jobs[1:]:
        _helpers().put(take_part)
    take_part()
    # All, even if one has failed: they may write into arrays that the caller gives up.
    for error in [ended.get() for _ in jobs]:
        if error is not None:
            raise error
    return [results[place] for place in range(len(jobs))]


def cut(start: int, stop: int, parts: int) -> list[slice]:
    """Cut a range into parts as equal as can be."""
    ends = [start + (stop - start) * part // max(parts, 1) for part in range(parts + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def shares(count: int, threads: int, least: int, most: int) -> list[list[slice]]:
    """Cut ``range(count)`` into a share per thread, and each share into pieces.

    No share is smaller than ``least``, where handing it over would cost more than it saves, and no
    piece larger than ``most``, so that its arrays stay in the processor's cache.
    """
    each = cut(0, count, max(1, min(threads, count // least)))
    return [cut(share.start, share.stop, -(-(share.stop - share.start) // most)) for share in each]


def summed(work: Callable[[slice, Floats], None], each: list[list[slice]], size: int) -> Floats:
    """The sum of the vectors that ``work(piece, vector)`` fills, over the pieces of all shares."""

    def add_up(pieces: list[slice]) -> Floats:
        total = np.empty(size, np.float32)
        work(pieces[0], total)
        for piece in pieces[1:]:
            more = scratch("more", size)
            work(piece, more)
            total += more
        return total

    total, *others = side_by_side(add_up, each)
    for other in others:
        total += other
    return total


class Scratch(threading.local):
    """Arrays that a thread uses again and again: fresh memory costs more than the work on it."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, *shape: int, dtype: type = np.float32) -> NDArray[Any]:
        """This thread's array of that name, with whatever its last user left in it."""
        size = prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size, dtype)
        return kept[:size].reshape(shape)


class _Hold(AbstractContextManager[None]):
    """One BLAS thread from when a thread enters until it leaves, however deep it goes in.

    Some libraries have a limit for each thread that calls them, others one for all: that is in
    force from when the first thread enters until the last one leaves.
    """

    def __init__(self) -> None:
        self._depth = threading.local()
        self._forget()

    def __enter__(self) -> None:
        depth = self._depth.now = getattr(self._depth, "now", 0) + 1
        if depth > 1:
            return
        each, shared = _blas()
        self._depth.before = _limit(each, [1] * len(each))
        with self._lock:
            if not self._callers:
                self._before = _limit(shared, [1] * len(shared))
            self._callers += 1

    def __exit__(self, *_: object) -> None:
        self._depth.now -= 1
        if self._depth.now:
            return
        each, shared = _blas()
        _limit(each, self._depth.before)
        with self._lock:
            self._callers -= 1
            if not self._callers:
                _limit(shared, self._before)

    def _forget(self) -> None:
        self._lock, self._callers = threading.Lock(), 0

    def after_fork(self) -> None:
        """In a forked child there are no threads but the one that is left."""
        held, inside = self._callers, getattr(self._depth, "now", 0) > 0
        self._forget()
        if inside:
            self._callers = 1
        elif held:
            _limit(_blas()[1], self._before)


def _limit(libraries: list[LibController], numbers: list[int]) -> list[int]:
    """Set each library's number of threads; what it was."""
    before = [library.get_num_threads() for library in libraries]
    for library, number in zip(libraries, numbers, strict=True):
        # OpenBLAS is set by one thread and by no other in silence, until all are let again.
        let_all = getattr(library, "clear_controlling_thread", lambda force: None)
        let_all(force=True)
        library.set_num_threads(number)
        let_all(force=True)
    return before


@cache
def _blas() -> tuple[list[LibController], list[LibController]]:
    """The BLAS libraries of this process: with a limit for each thread, and with one for all.

    Looking for them takes longer than a round.
    """
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    shared = [
        library
        for library in found
        if library.internal_api == "openblas" and library.threading_layer != "openmp"
    ]
    return [library for library in found if library not in shared], shared


@cache
def _helpers() -> SimpleQueue[Callable[[], None]]:
    """Where the other threads wait for work. An executor's bookkeeping takes 2 % of a round."""
    asked: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def help_out() -> None:
        while True:
            asked.get()()

    for number in range(1, max(cores(), 2)):
        threading.Thread(target=help_out, name=f"cafe-learn-{number}", daemon=True).start()
    return asked


_hold = _Hold()
scratch = Scratch()
if hasattr(os, "register_at_fork"):  # a forked child has the queue but nobody who waits at it
    os.register_at_fork(after_in_child=_helpers.cache_clear)
    os.register_at_fork(after_in_child=_hold.after_fork)
