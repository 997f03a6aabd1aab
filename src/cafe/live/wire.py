"""What goes between the server and its clients, whatever carries it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from cafe.live.model_layout import Arrays
from cafe.rounds.jobs import ONE_STEP, Work


@dataclass(frozen=True)
class Order:
    """What a client is asked to do.

    Attributes:
        client: whom it is for, by name.
        number: the client's number in the ledger.
        round: in which it is asked.
        version: of the global model that is sent along.
        seed: of the run; a client's own random numbers follow from it.
        work: how much to do.
        seconds: how long the server waits, None where it takes what comes whenever it comes. A
            duration, since clocks differ.
        reserve: how much of that a report usually takes on its way. A client whose work is
            ``partial`` stops so much earlier, and hands in what it has.
        carry: whether to keep the local model for a later round.
        after: go on from the local model of the job of this invitation; None: from the global
            model.
        began: the version that the local model goes back to.
        invitation: its number, by which the job is named; the round, where it is left out.
        offset: what to add to each gradient, by array, for all arrays that are learned; None:
            nothing. A wire sends it beside the order, and once where several orders share it.
        frozen: which parameters to leave as they are, likewise; None: all may move.
        keeps: the invitations whose local models the server may still name to this client. The
            client forgets all others.
    """

    client: str
    number: int
    round: int
    version: int
    seed: int
    work: Work = ONE_STEP
    seconds: float | None = None
    carry: bool = False
    after: int | None = None
    began: int | None = None
    invitation: int = -1
    reserve: float = 0.0
    offset: Arrays | None = field(default=None, repr=False, compare=False)
    frozen: Arrays | None = field(default=None, repr=False, compare=False)
    keeps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.invitation < 0:
            object.__setattr__(self, "invitation", self.round)


@dataclass(frozen=True, eq=False)
class Report:
    """What a client says it has done: nothing in it is believed before it is checked.

    Attributes:
        update: its model minus the one it began from, by array.
        invitation: that it answers.
        version: of the global model that it began from.
        carried: whether it went on from its local model.
        examples: how many its client holds; None where it does not say.
        loss: its mean loss before the first step; None where it did not measure it. A report that
            goes on from a local model has the loss of the first job in it.
        label: what it calls itself; for people, never for decisions.
        took: seconds of training, on the client's own clock.
        steps: gradient steps that it took; None where it does not say.
        rms_loss: the root of its mean squared loss, on the examples of ``loss``.
        labels: how many examples of each class its client holds.
    """

    update: Mapping[str, NDArray[Any]]
    invitation: int
    version: int
    carried: bool = False
    examples: int | None = None
    loss: float | None = None
    label: str = ""
    took: float = 0.0
    steps: int | None = None
    rms_loss: float | None = None
    labels: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Reply:
    """What came back for a ticket.

    Attributes:
        ticket: that was given for the order.
        report: what the client sent; None where there is none.
        stopped: whether the client gave up at its deadline.
        lost: why there will be no report: the client failed, or went away.
        malformed: why what it sent could not be read.
        at: when it was there, on the wire's clock; None: when it was asked for.
    """

    ticket: str
    report: Report | None = None
    stopped: bool = False
    lost: str = ""
    malformed: str = ""
    at: float | None = None


@dataclass(frozen=True)
class Opinion:
    """What a client found of the global model on its own examples."""

    ticket: str
    loss: float
    accuracy: float | None
    examples: int


class Wire(Protocol):
    """A way to clients. No call waits for a client."""

    def present(self) -> Sequence[str]:
        """Who can be reached now, by name. A client has the same name as long as it lives."""

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """Hand over orders, with the global model: a ticket each, None where that failed.

        ``offset`` and ``frozen`` of an order are sent along where there are any.
        """

    def receive(self, tickets: Collection[str]) -> Iterable[Reply]:
        """What has come for some tickets since they were last asked for."""

    def ask(self, clients: Sequence[str], model: Arrays, seconds: float) -> Sequence[str | None]:
        """Ask clients what they think of a model, within so many seconds: a ticket each."""

    def hear(self, tickets: Collection[str]) -> Iterable[Opinion | Reply]:
        """Opinions that have come, and replies where there will be none."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def clock(self) -> float:
        """Seconds on a clock that is never set back."""


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training function may return beside the bare model.

    Attributes:
        model: the arrays after training.
        examples: how many examples the client holds, whether or not it has learned from all of
            them. Policies that weigh by size need it.
        loss: the mean loss before the first step, for policies that need it.
        steps: how many gradient steps were taken.
        rms_loss: the root of the mean squared loss before the first step.
        labels: how many examples of each class the client holds.
    """

    model: Mapping[str, Any]
    examples: int | None = None
    loss: float | None = None
    steps: int | None = None
    rms_loss: float | None = None
    labels: Sequence[int] | None = None


@dataclass(eq=False)
class Memory:
    """A client's local model between two rounds.

    Attributes:
        run: whose it is.
        invitation: of the job that left it.
        began: the version of the global model that it goes back to.
        model: the arrays.
        update: what has been added to the global model since then, by array.
        loss: before the first step of the first job in it.
        rms_loss: likewise.
    """

    run: str
    invitation: int
    began: int
    model: Arrays = field(default_factory=dict)
    update: Arrays = field(default_factory=dict)
    loss: float | None = None
    rms_loss: float | None = None
