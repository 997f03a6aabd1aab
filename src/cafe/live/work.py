"""The client's side of a job: train, stop at the deadline, carry the local model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cafe.errors import InputError
from cafe.live.layout import Arrays, Layout
from cafe.live.wire import Memory, Order, Report, Trained
from cafe.randomness import Stream
from cafe.rounds.jobs import Work

Train = Callable[[Arrays, "Job"], Mapping[str, Any] | Trained]


class TooLateError(Exception):
    """The deadline has passed: what a client does now is of no use to the server."""


@dataclass(frozen=True, eq=False)
class Job:
    """What a training function is told beside the model.

    Attributes:
        client: its name at the server.
        number: its number in the server's ledger.
        round: in which it was asked.
        version: of the model it was given.
        work: how much to do: ``steps`` or ``epochs``.
        seed: of the run.
        settings: what this client was set up with, such as the path to its data.
        config: what the run was set up with.
        clock: seconds on this machine.
        until: on that clock, when the server stops waiting; infinite where it does not.
    """

    client: str
    number: int
    round: int
    version: int
    work: Work
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    until: float = float("inf")

    def left(self) -> float:
        """Seconds until the server stops waiting."""
        return self.until - self.clock()

    def go_on(self) -> bool:
        """Whether the server still waits. Ask it between batches, and return when it does not."""
        return self.left() > 0

    def check(self) -> None:
        """Leave the training function at once if the server has stopped waiting."""
        if not self.go_on():
            raise TooLateError

    def rng(self) -> np.random.Generator:
        """Random numbers of this client in this round: the same whenever they are asked for."""
        return Stream(self.seed, f"client {self.number}").at(self.round)


@dataclass(frozen=True, eq=False)
class Done:
    """What a client has to send, and to keep.

    Attributes:
        report: None where it came too late.
        memories: the local model that the server has named, and the one of this job. A client
            cannot know whether its report comes in time, so the server may name either next.
    """

    report: Report | None
    memories: tuple[Memory, ...] = ()


def work(
    train: Train,
    order: Order,
    model: Arrays,
    *,
    run: str,
    memories: Sequence[Memory] = (),
    settings: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    label: str = "",
    received: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Done:
    """Do a job.

    Args:
        train: the user's function, from a model and a :class:`Job` to the model after training.
        order: what the server asked for.
        model: the global model it sent along.
        run: which run this is; a local model of another one is of no use.
        memories: what earlier jobs left.
        settings: what this client was set up with.
        config: what the run was set up with.
        label: what it calls itself.
        received: when the order came, on the clock; left out: now.
        clock: seconds on this machine.
    """
    received = clock() if received is None else received
    until = float("inf") if order.seconds is None else received + order.seconds
    job = Job(
        order.client,
        order.number,
        order.round,
        order.version,
        order.work,
        order.seed,
        settings or {},
        config or {},
        clock,
        until,
    )
    layout = Layout.of(model)
    meant = [memory for memory in memories if _is(memory, run, order)][:1]
    start = meant[0].model if meant else model
    before = clock()
    try:
        answer = train({name: np.array(array) for name, array in start.items()}, job)
    except TooLateError:
        return Done(None, tuple(meant))
    took = clock() - before
    if clock() > until:
        return Done(None, tuple(meant))
    trained = answer if isinstance(answer, Trained) else Trained(answer)
    end = _checked(trained.model, layout, model)
    update = {name: end[name] - start[name] for name in layout.learned}
    began = order.version
    if meant:
        update = {name: meant[0].update[name] + update[name] for name in update}
        began = meant[0].began
    report = Report(
        update,
        order.round,
        began,
        bool(meant),
        int(trained.examples),  # NumPy's and PyTorch's numbers are not for the wire
        None if trained.loss is None else float(trained.loss),
        label,
        took,
    )
    if order.carry:
        meant.append(Memory(run, order.round, began, end, update))
    return Done(report, tuple(meant))


def _is(memory: Memory, run: str, order: Order) -> bool:
    """Whether the memory is that which the server means: it may be lost, or of another job."""
    named = (run, order.after, order.began)
    return order.after is not None and (memory.run, memory.round, memory.began) == named


def _checked(trained: Mapping[str, Any], layout: Layout, model: Arrays) -> Arrays:
    """What a training function returned, held to the kinds of the model it was given."""
    missing = [name for name in layout.shapes if name not in trained]
    unknown = [name for name in trained if name not in layout.shapes]
    if missing or unknown:
        raise InputError(
            f"A training function returns the arrays it was given, {', '.join(layout.shapes)}. "
            f"Got {', '.join(trained) or 'none'}."
        )
    end: Arrays = {}
    for name, shape in layout.shapes.items():
        array = np.asarray(trained[name])
        if array.shape != shape:
            raise InputError(
                f"A training function returns arrays of the shapes it was given: {name} has "
                f"{shape}. Got {array.shape}."
            )
        learned = name in layout.learned
        end[name] = array.astype(model[name].dtype) if learned else model[name]
    return end
