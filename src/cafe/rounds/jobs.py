"""Jobs: a client's piece of work, from the broadcast to its report. Arrays, a row per job."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, whole
from cafe.federation import Indices
from cafe.latency.base import Floats

Mask = NDArray[np.bool_]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """How much a client does before it reports, and on which objective.

    Attributes:
        steps: gradient steps, each on a fresh batch. One step is the paper's setting.
        epochs: passes over the client's own examples instead, in shuffled batches.
        scaled: whether a client's objective carries the paper's factor (eq. 1), N times its share
            of all examples, so that equal coefficients minimise the mean loss over all of them. A
            policy that weighs by examples itself leaves it out.
    """

    steps: int = 1
    epochs: int | None = None
    scaled: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", whole("steps", self.steps))
        if self.epochs is None:
            return
        object.__setattr__(self, "epochs", whole("epochs", self.epochs))
        if self.steps != 1:
            raise InputError(
                f"A job takes steps or epochs, not both. Got {self.steps} and {self.epochs}."
            )


ONE_STEP = Work()


@dataclass(frozen=True, eq=False)
class Invitation:
    """Who starts a job now.

    Attributes:
        clients: their numbers, in rising order; only idle ones.
        local: which of them go on from their own local model; None: all start from the global one.
        work: how much each does.
    """

    clients: Indices
    local: Mask | None = None
    work: Work = ONE_STEP


@dataclass(frozen=True, eq=False)
class Jobs:
    """What a server knows about its jobs.

    Attributes:
        client: who does it.
        start: when it was broadcast.
        version: of the global model that it began from; where it goes on from a local model, that
            which the local model began from.
        round: in which it was broadcast.
        local: whether it goes on from the client's local model.
    """

    client: Indices
    start: Floats
    version: Whole
    round: Whole
    local: Mask

    def __len__(self) -> int:
        return len(self.client)

    def take(self, index: Indices) -> Self:
        """Some of the jobs."""
        return type(self)(*(pick(getattr(self, field.name), index) for field in fields(self)))

    def then(self, others: Self) -> Self:
        """These jobs, followed by others."""
        if not len(self):
            return others
        pairs = ((getattr(self, f.name), getattr(others, f.name)) for f in fields(self))
        return type(self)(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, eq=False)
class Running(Jobs):
    """Jobs with what only the simulator knows.

    Attributes:
        arrival: when the report will be there; infinite where there will be none.
        stop: when the client stops working on it: at its arrival, or when it crashes. Infinite for
            one that was absent and never began.
    """

    arrival: Floats
    stop: Floats

    @classmethod
    def none(cls) -> Running:
        """No jobs."""
        number, time = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(number.astype(np.intp), time, number, number, number.astype(bool), time, time)


@dataclass(frozen=True, eq=False)
class Reports(Jobs):
    """Jobs that have reported and may be merged.

    Attributes:
        arrived: when the report came.
        updates: what was reported, a row per report, for a policy that ``needs`` updates.
        losses: the mean loss on its first batch before any step, for a policy that ``needs`` it.
    """

    arrived: Floats
    updates: NDArray[np.float32] | None = None
    losses: Floats | None = None


def shared(value: Any, count: int) -> NDArray[Any]:
    """A column of one value, which is stored once."""
    one = np.asarray(value)
    return np.ndarray((count,), one.dtype, one, strides=(0,))


def since(now: float, start: Floats) -> Floats:
    """``now - start``; free where all starts are one."""
    return (
        shared(now - start[0], len(start)) if start.strides == (0,) and len(start) else now - start
    )


def pick(column: NDArray[Any], index: Indices) -> NDArray[Any]:
    """``column[index]``; free where all entries are one number that is stored once.

    Most rounds' jobs share their start, version and round, and with a million clients copying what
    all share would cost more than all else.
    """
    return column[: len(index)] if column.strides == (0,) else column[index]
