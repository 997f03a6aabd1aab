"""The client's side of a job: train, stop at the deadline, carry the local model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError
from cafe.live.model_layout import Arrays, Layout
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
        work: how much to do: ``steps``, ``epochs`` or ``seconds`` of training; ``prox``, the
            factor of a proximal term (see :meth:`pull`).
        seed: of the run.
        settings: what this client was set up with, such as the path to its data.
        config: what the run was set up with.
        clock: seconds on this machine.
        until: on that clock, when the server stops waiting; infinite where it does not.
        began: on that clock, when training began.
        invitation: the number of the invitation, by which the server knows the job.
        base: the arrays of the global model that the job goes back to.
        offset: what to add to each gradient, by array (see :meth:`pull`); empty: nothing.
        frozen: which parameters must not move, by array, True where not; empty: all may. Whatever
            the training function makes of them, they are reported as unmoved.
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
    began: float = float("-inf")
    invitation: int = -1
    base: Arrays = field(default_factory=dict)
    offset: Arrays = field(default_factory=dict)
    frozen: Arrays = field(default_factory=dict)

    def left(self) -> float:
        """Seconds until the server stops waiting."""
        return self.until - self.clock()

    def go_on(self) -> bool:
        """Whether to go on. Ask it between batches, and return when it says no.

        It says no when the server has stopped waiting, and when the ``seconds`` of the job's work
        are used up.
        """
        budget = self.work.seconds
        return self.left() > 0 and (budget is None or self.clock() - self.began < budget)

    def check(self) -> None:
        """Leave the training function at once if the server has stopped waiting.

        A job whose work is ``partial`` is not left: its training function returns what it has.
        """
        if self.left() <= 0 and not self.work.partial:
            raise TooLateError

    def pull(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """What to add to the gradient of an array: prox times its distance from base, and offset.

        Args:
            name: of the array.
            array: its present value.
        """
        pull = np.asarray(self.work.prox * (np.asarray(array) - self.base[name]))
        return pull + self.offset[name] if name in self.offset else pull

    def rng(self) -> np.random.Generator:
        """Random numbers of this client's job: the same whenever they are asked for."""
        number = self.round if self.invitation < 0 else self.invitation
        return Stream(self.seed, f"client {self.number}").at(number)


@dataclass(frozen=True, eq=False)
class Done:
    """What a client has to send, and to keep.

    Attributes:
        report: None where it came too late.
        memories: the local models that the server may still name, and the one of this job. A client
            cannot know whether its report comes in time, so the server may name any of them next.
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
    if order.work.partial:
        until -= order.reserve
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
        invitation=order.invitation,
    )
    layout = Layout.of(model)
    meant = [memory for memory in memories if _is(memory, run, order)][:1]
    kept = [memory for memory in memories if memory in meant or _kept(memory, run, order)]
    start = meant[0].model if meant else model
    before = clock()
    base, offset, frozen = _base(start, meant, layout), order.offset or {}, order.frozen or {}
    _check_vectors(layout, offset, frozen)
    job = replace(job, began=before, base=base, offset=offset, frozen=frozen)
    try:
        answer = train({name: np.array(array) for name, array in start.items()}, job)
    except TooLateError:
        return Done(None, tuple(kept))
    took = clock() - before
    if clock() > until and not order.work.partial:
        return Done(None, tuple(kept))
    trained = answer if isinstance(answer, Trained) else Trained(answer)
    end = _checked(trained.model, layout, model)
    end |= {name: np.where(mask, start[name], end[name]) for name, mask in frozen.items()}
    update = {name: end[name] - start[name] for name in layout.learned}
    began, loss, rms_loss = order.version, trained.loss, trained.rms_loss
    if meant:
        update = {name: meant[0].update[name] + update[name] for name in update}
        began, loss, rms_loss = meant[0].began, meant[0].loss, meant[0].rms_loss
    report = Report(
        update,
        order.invitation,
        began,
        bool(meant),
        None
        if trained.examples is None
        else int(trained.examples),  # the wire takes Python's numbers only
        None if loss is None else float(loss),
        label,
        took,
        None if trained.steps is None else int(trained.steps),
        None if rms_loss is None else float(rms_loss),
        None if trained.labels is None else tuple(int(count) for count in trained.labels),
    )
    if order.carry:
        mine = Memory(run, order.invitation, began, end, update, report.loss, report.rms_loss)
        kept.append(mine)
    return Done(report, tuple(kept))


def _is(memory: Memory, run: str, order: Order) -> bool:
    """Whether the memory is that which the server means: it may be lost, or of another job."""
    named = (run, order.after, order.began)
    return order.after is not None and (memory.run, memory.invitation, memory.began) == named


def _kept(memory: Memory, run: str, order: Order) -> bool:
    """Whether the server may still name the memory."""
    return memory.run == run and memory.invitation in order.keeps


def _base(start: Arrays, meant: Sequence[Memory], layout: Layout) -> Arrays:
    """The global model that a job goes back to."""
    if not meant:
        return start
    moved = meant[0].update
    return {n: a - moved[n] if n in layout.learned else a for n, a in start.items()}


def _check_vectors(layout: Layout, offset: Arrays, frozen: Arrays) -> None:
    """Refuse vectors that were not made for the model that came with them."""
    expected = {name: layout.shapes[name] for name in layout.learned}
    for what, given, kinds in (("offset", offset, "f"), ("frozen", frozen, "b")):
        found = {name: array.shape for name, array in given.items()}
        if given and (found != expected or any(a.dtype.kind not in kinds for a in given.values())):
            raise InputError(
                f"The {what} of an order must have the shapes of the arrays that are learned, "
                f"{expected}. Got {found}: server and client must run the same version of CAFe."
            )


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
