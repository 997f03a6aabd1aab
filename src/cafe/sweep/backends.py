"""Where cells run: in processes of this machine, or on Dask workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from cafe.errors import InputError, check_whole
from cafe.learn.threads import cores
from cafe.results.worker_processes import run_in_processes
from cafe.sweep.sweep_cell import CellResult, SweepCell

CellWork = Callable[[SweepCell], CellResult | str]
RunCells = Callable[[CellWork, Sequence[SweepCell]], Iterator[CellResult | str]]
RESTARTS = 3  # in a row without a finished cell


class Backend(Protocol):
    """Starts workers when they are needed, and ends them."""

    def open(self) -> AbstractContextManager[RunCells]:
        """A function that runs cells, and yields each result when it is known."""


@dataclass(frozen=True)
class LocalProcesses:
    """Processes of this machine, one per core; cells of killed processes run again.

    Attributes:
        jobs: the number of processes; one per core if None. With one, cells run in this process.
        say: called with a sentence when a worker was killed.
    """

    jobs: int | None = None
    say: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_whole("jobs", self.jobs)

    def open(self) -> AbstractContextManager[RunCells]:
        """A function that runs cells, and yields each result when it is known."""
        return nullcontext(self._run)

    def _run(self, work: CellWork, cells: Sequence[SweepCell]) -> Iterator[CellResult | str]:
        workers, left, in_vain = self.jobs or cores(), [*cells], 0
        width = len(left)
        while left:
            now, done, killed = left[:width], set[int](), False
            try:
                for index, result in run_in_processes(work, now, workers):
                    done.add(index)
                    yield result
            except BrokenExecutor:
                killed = True
            in_vain = 0 if done else in_vain + 1
            # After a kill, only as many cells as workers run. If all of them were lost, each runs
            # alone, so that a cell that kills its worker does not stop others.
            width = (1 if in_vain else workers) if killed else 2 * width
            left = left[len(now) :] + [cell for i, cell in enumerate(now) if i not in done]
            if in_vain > RESTARTS:
                raise InputError(
                    f"Workers were killed {in_vain} times in a row, possibly because memory ran "
                    f"out. {len(left)} cells are not done. Continue them (--resume), with fewer "
                    "at a time if memory ran out (--jobs)."
                )
            if killed and self.say is not None:
                self.say("A worker was killed. Its cells run again.")
