"""Worker threads for PyTorch, each with one thread of PyTorch's own.

A pass that PyTorch splits over cores waits for all of them after every operation. Whole passes
side by side wait once, at the end. Results are taken in the order of the jobs, whichever thread is
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

Seat = TypeVar("Seat")
Job = TypeVar("Job")
Result = TypeVar("Result")


def share_out(
    work: Callable[[Seat, Job], Result],
    jobs: Sequence[Job],
    seats: Sequence[Seat],
    take: Callable[[Job, Result], object],
) -> None:
    """Run ``work(seat, job)`` for all jobs, in this thread and in one more per further seat.

    If a job fails, or this thread is interrupted, no further job starts, and the exception is
    raised when the running jobs have ended.

    Args:
        work: called with the seat of the thread, so that threads need not share objects.
        jobs: what is to be done.
        seats: what each thread works with; the first is this thread's.
        take: called with each job and its result, in the order of the jobs, by one thread at a
            time.
    """
    todo = _Jobs(work, jobs, take)
    others: list[Future[None]] = []
    with one_thread_of_torch():
        try:
            others += [worker_pool().submit(todo.run, seat) for seat in seats[1 : len(jobs)]]
            todo.run(seats[0])
        finally:
            todo.stop = todo.stop or todo.started < len(jobs)
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


class _Jobs:
    """The jobs of one call, and the results that wait until it is their turn."""

    def __init__(
        self, work: Callable[..., Result], jobs: Sequence[Job], take: Callable[..., object]
    ) -> None:
        self._work, self._jobs, self._take = work, jobs, take
        self._lock = threading.Lock()
        self._waiting: dict[int, object] = {}
        self._taken = 0
        self.started = 0
        self.stop = False

    def run(self, seat: object) -> None:
        """Do jobs until there are no more."""
        torch.set_num_threads(1)
        try:
            while (index := self._next()) is not None:
                self._finish(index, self._work(seat, self._jobs[index]))
        except BaseException:
            self.stop = True
            raise

    def _next(self) -> int | None:
        with self._lock:
            if self.stop or self.started == len(self._jobs):
                return None
            self.started += 1
            return self.started - 1

    def _finish(self, index: int, result: object) -> None:
        with self._lock:
            self._waiting[index] = result
            while self._taken in self._waiting:
                self._take(self._jobs[self._taken], self._waiting.pop(self._taken))
                self._taken += 1
