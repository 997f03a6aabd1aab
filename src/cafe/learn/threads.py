"""Worker threads that each have the matrix product to themselves.

A product on two cores waits for the slower one several times inside; two products side by side wait
once, at the end, and a core that another program takes costs its share and no more. So work is cut
into parts, one per thread, and BLAS is held to one thread while they run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread. Next to free inside another one: enter it once around a run."""
    return _hold


def side_by_side(work: Callable[[int], None], parts: int) -> None:
    """Do ``work(0)`` to ``work(parts - 1)`` at once, the first of them in this thread."""
    with one_blas_thread():
        others = [_pool().submit(work, part) for part in range(1, parts)]
        try:
            work(0)
        finally:
            wait(others)  # they write into the caller's arrays: never leave them running
        for other in others:
            other.result()


class Scratch(threading.local):
    """Arrays that a thread uses again and again: fresh memory costs more than the work on it."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.float32]] = {}

    def __call__(self, name: str, *shape: int) -> NDArray[np.float32]:
        """This thread's array of that name, with whatever its last user left in it."""
        size = prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size, np.float32)
        return kept[:size].reshape(shape)


class _Hold(AbstractContextManager[None]):
    """One BLAS thread from when the first caller enters until the last one leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._callers:
                self._limit = _blas().limit(limits=1)
            self._callers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._callers -= 1
            if not self._callers:
                self._limit.restore_original_limits()


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a round."""
    return ThreadpoolController().select(user_api="blas")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "cafe-learn")


_hold = _Hold()
if hasattr(os, "register_at_fork"):  # a forked child has the pool's object but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
