"""Jobs: a client's piece of work, from the invitation to its report. Arrays, a row per job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive, check_whole, is_finite_number
from cafe.federation import Indices
from cafe.latency.base import Floats

Mask = NDArray[np.bool_]
Whole = NDArray[np.int64]
Codes = NDArray[np.int8]


@dataclass(frozen=True)
class Work:
    """How much a client does before it reports, and on which objective.

    Attributes:
        steps: gradient steps, each on a fresh batch. One step is the paper's setting.
        epochs: passes over the client's own examples instead, in shuffled batches.
        seconds: instead, as many steps as fit into so many seconds of computing, and at least one.
            A simulation needs a federation with ``per_step`` for it.
        prox: the factor mu of a proximal term, mu/2 times the squared distance from the global
            model that the client began from, added to its objective (FedProx).
        partial: whether a client that would miss the round's deadline reports fewer steps, as many
            as let its report arrive in time. A job that cannot finish one step in time is late.
            It needs a policy with a deadline that drops late jobs, and in a simulation a
            federation with ``per_step``.
        scaled: whether a client's objective carries the paper's factor (eq. 1), N times its share
            of all examples, so that equal coefficients minimise the mean loss over all of them. A
            policy that weighs by examples itself leaves it out.
        download: bytes that are sent to the client, as a share of the model's size.
        upload: bytes that the client sends back, as a share of the model's size.
    """

    steps: int = 1
    epochs: int | None = None
    seconds: float | None = None
    prox: float = 0.0
    partial: bool = False
    scaled: bool = True
    download: float = 1.0
    upload: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_whole("steps", self.steps))
        if self.epochs is not None:
            object.__setattr__(self, "epochs", check_whole("epochs", self.epochs))
        if self.seconds is not None:
            object.__setattr__(self, "seconds", check_positive("seconds", self.seconds))
        given = [self.steps != 1, self.epochs is not None, self.seconds is not None]
        if sum(given) > 1:
            raise InputError(
                "A job takes steps, epochs or seconds, only one of them. Got "
                f"steps={self.steps}, epochs={self.epochs} and seconds={self.seconds}."
            )
        for name in ("prox", "download", "upload"):
            value = getattr(self, name)
            if isinstance(value, bool) or not is_finite_number(value) or value < 0:
                raise InputError(f"{name} must be a number from 0 up. Got {value!r}.")
            object.__setattr__(self, name, float(value))


ONE_STEP = Work()


@dataclass(frozen=True, eq=False)
class Invitation:
    """Who starts a job now.

    Attributes:
        clients: their numbers, in rising order; only idle ones.
        local: which of them go on from their own local model; None: all start from the global one.
        work: what each does.
        amount: how much each does, in the unit of ``work`` (steps, epochs or seconds), where this
            differs from client to client; None: as ``work`` says.
        note: a number for each job that comes back with its report, such as the probability with
            which the client was chosen, or its tier; None: 0 for all.
    """

    clients: Indices
    local: Mask | None = None
    work: Work = ONE_STEP
    amount: Whole | Floats | None = None
    note: Floats | None = None


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
        invitation: the number of the invitation that started it, counted from 0 over the run.
            Where every round has one invitation, it equals ``round``.
        steps: gradient steps that it takes; 0 where the server does not know, as for epochs on
            real clients before they report.
        note: the number that the invitation gave it.
    """

    client: Indices
    start: Floats
    version: Whole
    round: Whole
    local: Mask
    invitation: Whole
    steps: Whole
    note: Floats

    def __len__(self) -> int:
        return len(self.client)

    def take(self, index: Indices) -> Self:
        """Some of the jobs."""
        return type(self)(*(take_rows(getattr(self, field.name), index) for field in fields(self)))

    def then(self, others: Self) -> Self:
        """These jobs, followed by others."""
        if not len(self):
            return others
        if not len(others):
            return self
        return self.concatenate([self, others])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Several tables of jobs as one, in this order."""
        names = [field.name for field in fields(cls)]
        return cls(*[_joined([getattr(part, name) for part in parts]) for name in names])


_VISIBLE = tuple(field.name for field in fields(Jobs))


class Status(IntEnum):
    """Whether a job will report."""

    EXPECTED = 0  # its report comes at ``arrival``, infinite while that is not known
    CRASHED = 1  # it was begun, and its client is lost at ``stop``
    ABSENT = 2  # its client was invited and never began
    REFUSED = 3  # its report was not accepted
    STOPPED = 4  # its client gave up at the deadline


@dataclass(frozen=True, eq=False)
class Running(Jobs):
    """Jobs with columns that only the loop knows; decisions do not see them.

    Attributes:
        arrival: when the report is there; infinite where there is none, or it is not known.
        stop: when the client stops working on it: at its arrival, or when it is lost.
        status: a :class:`Status`.
        trained: seconds of training in it; not a number where they are not told apart from the
            rest of the response.
    """

    arrival: Floats
    stop: Floats
    status: Codes
    trained: Floats

    @classmethod
    def empty(cls) -> Running:
        """No jobs."""
        number, time = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(
            client=number.astype(np.intp),
            start=time,
            version=number,
            round=number,
            local=number.astype(bool),
            invitation=number,
            steps=number,
            note=time,
            arrival=time,
            stop=time,
            status=number.astype(np.int8),
            trained=time,
        )

    def visible(self) -> Jobs:
        """The columns that decisions may see."""
        return Jobs(*[getattr(self, name) for name in _VISIBLE])

    @property
    def all_expected(self) -> bool:
        """Whether no job is known to be lost; cheap where one status is stored for all."""
        status = self.status
        if status.strides == (0,):
            return not len(status) or int(status[0]) == Status.EXPECTED
        return not status.any()


@dataclass(frozen=True, eq=False)
class Reports(Jobs):
    """Jobs that have reported and may be merged.

    ``steps`` are those that were done. A client that went on from its local model reports the work
    of several jobs at once: ``steps`` and ``seconds`` are their sums.

    Attributes:
        arrived: when the report came.
        trained: seconds of training in it; not a number where they are not told apart from the
            rest of the response. :attr:`seconds` has the whole response there.
        used: in how many updates the report has been before; above 0 only where it is held.
        updates: what was reported, a row per report, for a policy that ``needs`` updates.
        losses: the mean loss on its first batch before any step, for a policy that ``needs`` it.
        rms_losses: the root of the mean squared loss on the same batch, likewise.
        labels: how many examples of each class its client holds, likewise.
        offsets: what each job added to its gradients in all, a row per report, zeros where nothing:
            the common vector and its client's own as they were at its start; likewise.
        common: the vector that every client adds at present, zeros where there is none; for a
            policy that ``needs`` offsets.
    """

    arrived: Floats
    trained: Floats
    used: Whole
    updates: NDArray[np.float32] | None = None
    losses: Floats | None = None
    rms_losses: Floats | None = None
    labels: Whole | None = None
    offsets: NDArray[np.float32] | None = None
    common: NDArray[np.float32] | None = None

    @property
    def seconds(self) -> Floats:
        """How long each client trained. Without ``per_step`` a simulation counts all it took."""
        return np.where(np.isnan(self.trained), self.arrived - self.start, self.trained)


def constant_column(value: Any, count: int) -> NDArray[Any]:
    """A read-only column of one value, which is stored once."""
    one = np.asarray(value)
    column = np.ndarray((count,), one.dtype, one, strides=(0,))
    column.setflags(write=False)
    return column


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns as one; if all of them hold the same value, it is still stored once."""
    first = columns[0][:1].tobytes()
    if all(c.strides == (0,) and c[:1].tobytes() == first for c in columns):
        return constant_column(columns[0][0], sum(map(len, columns)))
    return np.concatenate(columns)


def elapsed(now: float, start: Floats) -> Floats:
    """``now - start``; free where all starts are one."""
    return (
        constant_column(now - start[0], len(start))
        if start.strides == (0,) and len(start)
        else now - start
    )


def take_rows(column: NDArray[Any], index: Indices) -> NDArray[Any]:
    """``column[index]``; free where all entries are one number that is stored once.

    Most rounds' jobs share their start, version and round, and with a million clients copying what
    all share would cost more than all else.
    """
    return column[: len(index)] if column.strides == (0,) else column[index]
