"""The client's side of a job: train, stop at the deadline, keep the local model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_whole
from cafe.live.model_layout import Arrays, Layout
from cafe.live.wire import Order, Report
from cafe.randomness import Stream
from cafe.rounds.jobs import Work

Train = Callable[[Arrays, "Job"], "Mapping[str, Any] | Trained"]


class TooLateError(Exception):
    """Raised by :meth:`Job.check` when the server has stopped waiting for the job."""


@dataclass(frozen=True, eq=False)
class ClientContext:
    """The values that all jobs of a client share.

    Attributes:
        run: an identifier of the run. A client does not continue from a local model of another run.
        settings: the client's own settings, such as the path to its data.
        config: the run's settings.
        label: the client's name for people; it is shown, and never used in decisions.
        clock: returns seconds on this machine.

    Example:
        >>> from cafe.live import ClientContext
        >>> ClientContext(settings={"partition-id": 0}).settings["partition-id"]
        0
    """

    run: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, eq=False)
class Job:
    """What a training function is given in addition to the model.

    Attributes:
        client: the client's name at the server.
        number: the client's number in the server's ledger.
        round: the round in which the job was started.
        version: the version of the global model that was sent.
        work: how much to do: ``steps``, ``epochs`` or ``seconds`` of training; ``prox``, the
            factor of a proximal term (see :meth:`pull`).
        seed: the seed of the run.
        settings: the client's own settings, such as the path to its data.
        config: the run's settings.
        clock: returns seconds on this machine.
        until: when the server stops waiting, on that clock; infinite if it does not stop.
        began: when training began, on that clock.
        invitation: the number of the invitation. Client and invitation identify the job.
        base: the arrays of the global model that the job started from.
        offset: what to add to each gradient, by array (see :meth:`pull`); empty: nothing.
        frozen: which parameters must not change, by array, True for a frozen one; empty: none.
            Frozen parameters are reported as unchanged, whatever the training function returns.
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
        """Whether to continue training. Ask between batches, and return the model when it is False.

        It is False when the server has stopped waiting, and when the ``seconds`` of the job's work
        are used up.
        """
        budget = self.work.seconds
        return self.left() > 0 and (budget is None or self.clock() - self.began < budget)

    def check(self) -> None:
        """Raise :class:`TooLateError` if the server has stopped waiting, which ends the job.

        A job whose work is ``partial`` is not ended: its training function returns what it has.
        """
        if self.left() <= 0 and not self.work.partial:
            raise TooLateError

    def batches(self, examples: int, size: int) -> Iterator[NDArray[np.int64]]:
        """The rows of one batch after the other, as many batches as the job's work asks for.

        Each pass over the examples has a new random order, and its last batch may be smaller. After
        the first batch they end early if :meth:`go_on` is False. A job that is repeated has the
        same batches.

        Args:
            examples: how many examples the client has.
            size: how many of them are in a batch.

        Example:
            >>> from cafe.live import Job
            >>> from cafe.rounds import Work
            >>> job = Job("a", number=0, round=0, version=0, work=Work(epochs=2), seed=0)
            >>> [len(rows) for rows in job.batches(10, size=4)]
            [4, 4, 2, 4, 4, 2]
        """
        examples, size, work = (
            check_whole("examples", examples),
            check_whole("size", size),
            self.work,
        )
        a_pass = -(-examples // size)
        limit = work.steps if work.epochs is None else work.epochs * a_pass
        rng, order = self.rng(), np.empty(0, dtype=np.int64)
        for step in count() if work.seconds is not None else range(limit):
            if step and not self.go_on():
                return
            at = step % a_pass
            if not at:
                order = rng.permutation(examples)
            yield order[at * size : (at + 1) * size]

    def pull(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """What to add to the gradient of an array: prox times its distance from base, and offset.

        Args:
            name: the array's name.
            array: its present value.
        """
        pull = np.asarray(self.work.prox * (np.asarray(array) - self.base[name]))
        return pull + self.offset[name] if name in self.offset else pull

    def rng(self) -> np.random.Generator:
        """A random generator of this job: every call returns one in the same state."""
        number = self.round if self.invitation < 0 else self.invitation
        return Stream(self.seed, f"client {self.number}").at(number)


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training function may return instead of the bare model.

    Attributes:
        model: the arrays after training.
        examples: how many examples the client holds, whether or not it has trained on all of them.
            Policies that weigh by size need it.
        loss: the mean loss before the first step, for policies that need it.
        steps: how many gradient steps were taken.
        rms_loss: the root of the mean squared loss before the first step.
        labels: how many examples of each class the client holds.
        rate: the learning rate of these steps; their mean if it changed.

    Example:
        >>> from cafe.live import Trained
        >>> def train(model, job):
        ...     return Trained({"w": model["w"] + 1.0}, examples=200, steps=1)
    """

    model: Mapping[str, Any]
    examples: int | None = None
    loss: float | None = None
    steps: int | None = None
    rms_loss: float | None = None
    labels: Sequence[int] | None = None
    rate: float | None = None


@dataclass(eq=False)
class LocalModel:
    """A model that a client keeps between two rounds.

    Attributes:
        run: the run that it belongs to.
        invitation: the invitation of the job that produced it.
        began: the version of the global model that its training started from.
        model: the arrays.
        update: the sum of all changes since then, by array.
        loss: the loss before the first step of the first of its jobs.
        rms_loss: the root of the mean squared loss at the same moment.
    """

    run: str
    invitation: int
    began: int
    model: Arrays = field(default_factory=dict)
    update: Arrays = field(default_factory=dict)
    loss: float | None = None
    rms_loss: float | None = None


def work(
    train: Train,
    order: Order,
    model: Arrays,
    context: ClientContext | None = None,
    *,
    local_models: Sequence[LocalModel] = (),
    received: float | None = None,
) -> tuple[Report | None, tuple[LocalModel, ...]]:
    """Do a job as a client does it: train, and make the report.

    Args:
        train: your training function, from a model and a :class:`Job` to the model after training.
        order: what the server asked for.
        model: the global model that was sent with the order.
        context: the client's settings.
        local_models: the local models that the client's earlier jobs left.
        received: when the order arrived, on the context's clock; None: now.

    Returns:
        The report, None if the job missed its deadline; and the local models to keep. A client
        cannot know whether its report arrives in time, so it keeps all that the server may still
        refer to.

    Example:
        >>> import numpy as np
        >>> from cafe.live import Order, work
        >>> order = Order(client="a", number=0, round=0, version=0, seed=0)
        >>> report, _ = work(lambda model, job: {"w": model["w"] + 1}, order, {"w": np.zeros(2)})
        >>> report.update["w"].tolist()
        [1.0, 1.0]
    """
    context = context or ClientContext()
    clock = context.clock
    received = clock() if received is None else received
    until = float("inf") if order.seconds is None else received + order.seconds
    if order.work.partial:
        until -= order.reserve
    layout = Layout.of(model)
    previous = next((kept for kept in local_models if _is_meant(kept, order, context.run)), None)
    kept = [
        local
        for local in local_models
        if local is previous or (local.run == context.run and local.invitation in order.keeps)
    ]
    start = model if previous is None else previous.model
    job = _job(order, context, layout, until, _base(start, previous, layout))
    try:
        answer = train({name: np.array(array) for name, array in start.items()}, job)
    except TooLateError:
        return None, tuple(kept)
    took = clock() - job.began
    if clock() > until and not order.work.partial:
        return None, tuple(kept)
    trained = answer if isinstance(answer, Trained) else Trained(answer)
    end = _check_trained(trained.model, layout, model)
    end |= {name: np.where(mask, start[name], end[name]) for name, mask in job.frozen.items()}
    update = {name: end[name] - start[name] for name in layout.learned}
    began, loss, rms_loss = order.version, trained.loss, trained.rms_loss
    if previous is not None:
        update = {name: previous.update[name] + update[name] for name in update}
        began, loss, rms_loss = previous.began, previous.loss, previous.rms_loss
    # Messages carry Python's own numbers, not NumPy's.
    report = Report(
        update=update,
        invitation=order.invitation,
        version=began,
        carried=previous is not None,
        examples=None if trained.examples is None else int(trained.examples),
        loss=None if loss is None else float(loss),
        label=context.label,
        took=took,
        steps=None if trained.steps is None else int(trained.steps),
        rms_loss=None if rms_loss is None else float(rms_loss),
        labels=None if trained.labels is None else tuple(int(count) for count in trained.labels),
        rate=None if trained.rate is None else float(trained.rate),
    )
    if order.carry:
        kept.append(
            LocalModel(
                context.run, order.invitation, began, end, update, report.loss, report.rms_loss
            )
        )
    return report, tuple(kept)


def _job(order: Order, context: ClientContext, layout: Layout, until: float, base: Arrays) -> Job:
    """The job of an order; training begins now."""
    offset, frozen = order.offset or {}, order.frozen or {}
    _check_vectors(layout, offset, frozen)
    return Job(
        client=order.client,
        number=order.number,
        round=order.round,
        version=order.version,
        work=order.work,
        seed=order.seed,
        settings=context.settings,
        config=context.config,
        clock=context.clock,
        until=until,
        began=context.clock(),
        invitation=order.invitation,
        base=base,
        offset=offset,
        frozen=frozen,
    )


def _is_meant(local: LocalModel, order: Order, run: str) -> bool:
    """Whether this is the local model that the order refers to."""
    named = (run, order.after, order.began)
    return order.after is not None and (local.run, local.invitation, local.began) == named


def _base(start: Arrays, previous: LocalModel | None, layout: Layout) -> Arrays:
    """The global model that a job's training started from."""
    if previous is None:
        return start
    moved = previous.update
    return {n: a - moved[n] if n in layout.learned else a for n, a in start.items()}


def _check_vectors(layout: Layout, offset: Arrays, frozen: Arrays) -> None:
    """Raise an error if the vectors of an order do not fit the model that was sent with them."""
    expected = {name: layout.shapes[name] for name in layout.learned}
    for what, given, kinds in (("offset", offset, "f"), ("frozen", frozen, "b")):
        found = {name: array.shape for name, array in given.items()}
        if given and (found != expected or any(a.dtype.kind not in kinds for a in given.values())):
            raise InputError(
                f"The {what} of an order must have the shapes of the arrays that are learned, "
                f"{expected}. Got {found}: server and client must run the same version of CAFe."
            )


def _check_trained(trained: Mapping[str, Any], layout: Layout, model: Arrays) -> Arrays:
    """What a training function returned, in the data types of the model that it was given."""
    missing = [name for name in layout.shapes if name not in trained]
    unknown = [name for name in trained if name not in layout.shapes]
    if missing or unknown:
        raise InputError(
            "A training function must return the arrays that it was given, "
            f"{', '.join(layout.shapes)}. Got {', '.join(trained) or 'none'}."
        )
    end: Arrays = {}
    for name, shape in layout.shapes.items():
        array = np.asarray(trained[name])
        if array.shape != shape:
            raise InputError(
                "A training function must return arrays of the shapes that it was given: "
                f"{name} has {shape}. Got {array.shape}."
            )
        learned = name in layout.learned
        end[name] = array.astype(model[name].dtype) if learned else model[name]
    return end
