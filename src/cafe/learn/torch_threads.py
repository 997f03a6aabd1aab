"""Worker threads for PyTorch, each with one thread of PyTorch's own.

A pass that PyTorch splits over cores waits for all of them after every operation. Whole passes
side by side wait once, at the end. Results are taken in the order of the items, whichever thread is
first, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

from cafe.learn.threads import worker_pool

Workspace = TypeVar("Workspace")
Item = TypeVar("Item")
Result = TypeVar("Result")


def run_in_threads(
    work: Callable[[Workspace, Item], Result],
    items: Sequence[Item],
    workspaces: Sequence[Workspace],
    take: Callable[[Item, Result], object],
) -> None:
    """Run ``work(workspace, item)`` for all items: one thread per workspace, this one included.

    If a call fails, or this thread is interrupted, no further call starts, and the exception is
    raised when the running calls have ended.

    Args:
        work: called with the workspace of its thread, so that threads need not share objects.
        items: what the calls work on.
        workspaces: the objects that each thread uses alone; the first is this thread's.
        take: called with each item and its result, in the order of the items, by one thread at a
            time.
    """
    queue = _Queue(work, items, take)
    others: list[Future[None]] = []
    with one_thread_of_torch():
        try:
            others += [worker_pool().submit(queue.run, own) for own in workspaces[1 : len(items)]]
            queue.run(workspaces[0])
        finally:
            queue.stop = queue.stop or queue.started < len(items)
            wait(others)
    for other in others:
        other.result()


@contextmanager
def one_thread_of_torch() -> Iterator[None]:
    """A context in which PyTorch uses one thread for the work of this thread.

    The number is each thread's own, but a new thread begins with the number that was set last in
    any thread. So the number is set again at the end, even if this thread's has not changed.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Queue:
    """The items that are left, and the results of items whose predecessors are still running."""

    def __init__(
        self, work: Callable[..., Result], items: Sequence[Item], take: Callable[..., object]
    ) -> None:
        self._work, self._items, self._take = work, items, take
        self._lock = threading.Lock()
        self._waiting: dict[int, object] = {}
        self._taken = 0
        self.started = 0
        self.stop = False

    def run(self, workspace: object) -> None:
        """Work on items until none is left."""
        torch.set_num_threads(1)
        try:
            while (index := self._next()) is not None:
                self._finish(index, self._work(workspace, self._items[index]))
        except BaseException:
            self.stop = True
            raise

    def _next(self) -> int | None:
        with self._lock:
            if self.stop or self.started == len(self._items):
                return None
            self.started += 1
            return self.started - 1

    def _finish(self, index: int, result: object) -> None:
        with self._lock:
            self._waiting[index] = result
            while self._taken in self._waiting:
                self._take(self._items[self._taken], self._waiting.pop(self._taken))
                self._taken += 1
