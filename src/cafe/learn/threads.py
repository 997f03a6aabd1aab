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
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread. Next to free inside another one: enter it once around a run."""
    return _Hold()


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """Do all jobs, in this thread and in others, whoever is free taking the next."""
    waiting = deque(range(len(jobs)))
    results: dict[int, Result] = {}
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def take_part() -> None:
        while True:
            try:
                place = waiting.popleft()
            except IndexError:
                return
            ended.put(do(place))

    def do(place: int) -> BaseException | None:
        try:
            # A model that diverges is for the caller to find in its numbers, not in a warning.
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                results[place] = work(jobs[place])
        except BaseException as error:
            return error
        return None

    for _ in jobs[1:]:
        _pool().submit(take_part)
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
    """One BLAS thread from when this is entered until it is left, maybe in another thread.

    Some libraries have one limit for all threads: it is in force until no hold is left in any of
    them. Others have one for each thread that calls them.
    """

    lock = threading.Lock()
    holders: ClassVar[Counter[int]] = Counter()  # how many holds were entered in each thread
    before: ClassVar[list[int]] = []  # the limits for all threads

    def __enter__(self) -> None:
        each, shared = _blas()
        self._thread = threading.get_ident()
        with self.lock:
            if not self.holders.total():
                _Hold.before = _limit(shared, [1] * len(shared))
            self.holders[self._thread] += 1
        self._own = _limit(each, [1] * len(each))

    def __exit__(self, *_: object) -> None:
        each, shared = _blas()
        if threading.get_ident() == self._thread:
            _limit(each, self._own)
        with self.lock:
            self.holders[self._thread] -= 1
            if not self.holders.total():
                self.holders.clear()
                _limit(shared, self.before)

    @classmethod
    def after_fork(cls) -> None:
        """In a forked child there are no threads but the one that is left."""
        here, held, cls.lock = threading.get_ident(), cls.holders.total(), threading.Lock()
        mine = cls.holders[here]
        cls.holders = Counter({here: mine} if mine else {})
        if held and not mine:
            _limit(_blas()[1], cls.before)


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
def _pool() -> ThreadPoolExecutor:
    """Those who help the thread that asks."""
    return ThreadPoolExecutor(max(cores() - 1, 1), "cafe-learn")


scratch = Scratch()
if hasattr(os, "register_at_fork"):  # a forked child has the pool's object but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_Hold.after_fork)
