"""What a backend is, and the one that uses processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from cafe.errors import InputError, check_whole, shorten
from cafe.learn.threads import cores
from cafe.workers.worker_processes import run_in_processes

RESTARTS = 3  # in a row without a finished call


class WorkersLostError(InputError):
    """Workers were killed or cannot be reached, so calls are not done."""


@dataclass(frozen=True)
class LostCall:
    """The result of a call whose workers were killed again and again.

    Attributes:
        reason: a sentence for the user.
    """

    reason: str


# Calls a function with each argument. Yields the index of the argument and the result, or a
# LostCall, as soon as the call has ended.
RunCalls = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]


class Backend(Protocol):
    """Starts workers when they are needed, and ends them."""

    def open(self) -> AbstractContextManager[RunCalls]:
        """A context with a function that makes calls, and yields each result when it is known."""

    def threads(self) -> int:
        """How many threads a call may use."""


@contextmanager
def say_how_to_resume() -> Iterator[None]:
    """A context that adds to errors about lost workers that what is done is stored."""
    try:
        yield
    except WorkersLostError as error:
        raise WorkersLostError(
            f"{error} What was finished is stored: repeat the command with --resume."
        ) from None


def check_backend(value: Any) -> None:
    """Raise InputError unless the value is None or a backend."""
    if value is not None and not all(
        callable(getattr(value, x, None)) for x in ("open", "threads")
    ):
        raise InputError(
            "backend must be one of cafe.workers, such as LocalProcesses(2), or None. Got "
            f"{shorten(value)}."
        )


@dataclass(frozen=True)
class LocalProcesses:
    """Processes of this machine, one per core; calls in killed processes are repeated.

    Attributes:
        jobs: the number of processes; one per core if None. With one, calls run in this process.
        say: called with a sentence when a worker was killed.
        noun: what messages name the calls, in the plural.
    """

    jobs: int | None = None
    say: Callable[[str], None] | None = None
    noun: str = "calls"

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_whole("jobs", self.jobs)

    def open(self) -> AbstractContextManager[RunCalls]:
        """A context with a function that makes calls, and yields each result when it is known."""
        return nullcontext(self._run)

    def threads(self) -> int:
        """An equal share of the cores."""
        return max(cores() // (self.jobs or cores()), 1)

    def _run(self, work: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        workers, left, in_vain = self.jobs or cores(), [*range(len(given))], 0
        width = len(left)
        while left:
            now, done, killed = left[:width], set[int](), False
            try:
                calls = run_in_processes(work, [given[number] for number in now], workers)
                for index, result in calls:
                    done.add(now[index])
                    yield now[index], result
            except BrokenExecutor:
                killed = True
            in_vain = 0 if done else in_vain + 1
            # After a kill, only as many calls as workers run. If all of them were lost, each runs
            # alone, so that a call that kills its worker does not stop others.
            width = (1 if in_vain else workers) if killed else 2 * width
            left = left[len(now) :] + [number for number in now if number not in done]
            if in_vain > RESTARTS:
                raise WorkersLostError(
                    f"Workers were killed {in_vain} times in a row, possibly because memory ran "
                    f"out. {len(left)} {self.noun} are not done. If memory ran out, run fewer at a "
                    "time (--jobs)."
                )
            if killed and self.say is not None:
                self.say(f"A worker was killed. Its {self.noun} are started again.")
