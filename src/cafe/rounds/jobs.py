"""Jobs: the work of one client from the invitation to its report, as arrays with a row per job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cafe.errors import (
    InputError,
    check_flag,
    check_not_negative,
    check_positive,
    check_whole,
)
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
        seconds: instead, as many steps as fit into this computing time, and at least one. A
            simulation needs a federation with ``per_step`` for it.
        prox: the factor mu of a proximal term, mu/2 times the squared distance from the global
            model that the client started from, added to its objective (FedProx).
        partial: whether a client that would miss the deadline takes fewer steps, so that its
            report arrives in time. A job that cannot finish one step in time is late. This needs a
            policy with a deadline that drops late jobs, and in a simulation a federation with
            ``per_step``.
        scaled: whether a client's objective is multiplied by the paper's factor (eq. 1), N times
            its share of all examples. Equal coefficients then minimise the mean loss over all
            examples. Set it to False if the policy weighs reports by examples. Real clients train
            on their objective as it is, whatever ``scaled`` says.
        download: bytes sent to the client, as a fraction of the model's size.
        upload: bytes that the client sends back, as a fraction of the model's size.
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
                "A Work needs one of steps, epochs and seconds. Got "
                f"steps={self.steps}, epochs={self.epochs} and seconds={self.seconds}."
            )
        for name in ("prox", "download", "upload"):
            object.__setattr__(self, name, check_not_negative(name, getattr(self, name)))
        for name in ("partial", "scaled"):
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))


ONE_STEP = Work()


@dataclass(frozen=True, eq=False)
class Invitation:
    """The clients that start a job now, and what they do.

    Attributes:
        clients: numbers of idle clients, in rising order.
        local: mask of those that continue from their local model; None: all start from the global
            model.
        work: what each of them does.
        amount: the amount of work of each client, in the unit of ``work`` (steps, epochs or
            seconds), if it differs between clients; None: the amount in ``work`` for all.
        note: a number for each job that is returned with its report, such as the probability with
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
        client: number of the client.
        start: time of its broadcast.
        version: version of the global model that it started from; if it continues from a local
            model, the version that the local model started from.
        round: round in which it was broadcast.
        local: whether it continues from the client's local model.
        invitation: number of the invitation that started it, counted from 0 over the run. It
            equals ``round`` if every round has one invitation.
        steps: gradient steps that it takes; 0 if the server does not know, as for epochs on real
            clients before they report.
        note: its entry in the invitation's ``note``.
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
        """The jobs in some rows."""
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
        """One table of all jobs, in this order."""
        names = [field.name for field in fields(cls)]
        return cls(*[_joined([getattr(part, name) for part in parts]) for name in names])


_VISIBLE = tuple(field.name for field in fields(Jobs))


class Status(IntEnum):
    """Whether the report of a job is expected."""

    EXPECTED = 0  # its report arrives at ``arrival``, which is infinite while it is not known
    CRASHED = 1  # it started, and its client is lost at ``stop``
    ABSENT = 2  # its client was invited and did not start
    REFUSED = 3  # its report was rejected
    STOPPED = 4  # its client stopped at the deadline


@dataclass(frozen=True, eq=False)
class Running(Jobs):
    """Jobs with columns that decisions do not see.

    Attributes:
        arrival: time at which the report arrives; infinite if it never does, or is not known yet.
        stop: time at which the client stops working on it: at its arrival, or when it is lost.
        status: a :class:`Status`.
        trained: seconds of training in it; NaN if they are not measured apart from the rest of the
            response.
    """

    arrival: Floats
    stop: Floats
    status: Codes
    trained: Floats

    @classmethod
    def empty(cls) -> Running:
        """A table without jobs."""
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
        """Whether the report of every job is expected."""
        status = self.status
        if status.strides == (0,):
            return not len(status) or int(status[0]) == Status.EXPECTED
        return not status.any()


@dataclass(frozen=True, eq=False)
class Reports(Jobs):
    """Jobs that have reported and may be merged.

    ``steps`` are the steps that were taken. A client that continued from its local model reports
    the work of several jobs at once: ``steps`` and ``seconds`` are their sums.

    Attributes:
        arrived: time at which the report arrived.
        trained: seconds of training in it; NaN if they are not measured apart from the rest of the
            response. :attr:`seconds` is the whole response time then.
        used: number of earlier updates that used the report; above 0 only for held reports.
        updates: the reported updates, a row per report; for a policy that needs "updates".
        models: the clients' models, a row per report; for a policy that needs "models", which also
            sees ``updates``.
        model: the global model as a vector; for a policy that needs "models".
        losses: mean loss on the first batch before any step; for a policy that needs "losses".
        rms_losses: root of the mean squared loss on that batch; for a policy that needs "rms
            losses".
        labels: number of examples of each class that the client holds; for a policy that needs
            "labels".
        offsets: the sum of the vectors that each job added to its gradients, a row per report: the
            common vector and the client's offset when the job started; for a policy that needs
            "offsets".
        common: the vector that every client adds at present, zeros if there is none; for a policy
            that needs "offsets".
        rates: the learning rate of the steps of each report, the last job's if it has several; for
            a policy that needs "rates".
    """

    arrived: Floats
    trained: Floats
    used: Whole
    updates: NDArray[np.float32] | None = None
    models: NDArray[np.float32] | None = None
    model: NDArray[np.float32] | None = None
    losses: Floats | None = None
    rms_losses: Floats | None = None
    labels: Whole | None = None
    offsets: NDArray[np.float32] | None = None
    common: NDArray[np.float32] | None = None
    rates: Floats | None = None

    @property
    def seconds(self) -> Floats:
        """Seconds of training of each report; the whole response time if ``trained`` is NaN.

        A simulation without ``per_step`` does not know the training time.
        """
        return np.where(np.isnan(self.trained), self.arrived - self.start, self.trained)


def constant_column(value: Any, count: int) -> NDArray[Any]:
    """A read-only column that repeats one value; the value is stored once (its stride is 0)."""
    one = np.asarray(value)
    column = np.ndarray((count,), one.dtype, one, strides=(0,))
    column.setflags(write=False)
    return column


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate columns; if all of them repeat the same value, it is still stored once."""
    first = columns[0][:1].tobytes()
    if all(c.strides == (0,) and c[:1].tobytes() == first for c in columns):
        return constant_column(columns[0][0], sum(map(len, columns)))
    return np.concatenate(columns)


def elapsed(now: float, start: Floats) -> Floats:
    """``now - start``; if ``start`` repeats one value, so does the result, stored once."""
    return (
        constant_column(now - start[0], len(start))
        if start.strides == (0,) and len(start)
        else now - start
    )


def take_rows(column: NDArray[Any], index: Indices) -> NDArray[Any]:
    """``column[index]``; a column that repeats one value is not copied.

    The jobs of most rounds share their start, version and round. With a million clients, copying
    these columns would take most of the time.
    """
    return column[: len(index)] if column.strides == (0,) else column[index]
