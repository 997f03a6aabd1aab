"""The messages between the server and its clients, and the interface that carries them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from cafe.live.model_layout import Arrays, Vector
from cafe.rounds.jobs import ONE_STEP, Work


@dataclass(frozen=True)
class Order:
    """What the server asks a client to do.

    Attributes:
        client: the client's name.
        number: the client's number in the ledger.
        round: the round in which the job is started.
        version: the version of the global model that is sent with the order.
        seed: the seed of the run; a client's own random numbers are derived from it.
        work: how much to do.
        seconds: how long the server waits; None if it accepts the report at any time. A duration,
            because clocks differ.
        reserve: how many of these seconds a report usually spends in transit. A client whose work
            is ``partial`` stops this much earlier and reports what it has.
        carry: whether to keep the local model for a later round.
        after: continue from the local model of the job with this invitation; None: start from the
            global model.
        began: the version of the global model that this local model started from.
        invitation: the number of the invitation, which identifies the job; the round if omitted.
        offset: what to add to each gradient, by array, for all arrays that are learned; None:
            nothing. A wire sends it separately, and only once if several orders share it.
        frozen: which parameters must not change, sent in the same way; None: all may change.
        keeps: the invitations whose local models the server may still refer to. The client
            deletes all others.
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
    """What a client claims to have done. The server trusts nothing in it before it is validated.

    Attributes:
        update: the client's model minus the one that it started from, by array. Empty once the
            report is accepted: ``vector`` replaces it.
        invitation: the invitation that it answers.
        version: the version of the global model that it started from.
        carried: whether it continued from its local model.
        examples: how many examples its client holds; None if unknown.
        loss: its mean loss before the first step; None if not measured. A report that continues
            from a local model has the loss of the first job in it.
        label: the client's name for itself, shown to people and never used in decisions.
        took: seconds of training, on the client's own clock; None if not measured.
        steps: gradient steps that it took; None if unknown.
        rms_loss: the root of its mean squared loss, on the examples of ``loss``.
        labels: how many examples of each class its client holds.
        rate: the learning rate of its steps; None if unknown.
        vector: the update as one vector; None until the server has accepted the report.
    """

    update: Mapping[str, NDArray[Any]]
    invitation: int
    version: int
    carried: bool = False
    examples: int | None = None
    loss: float | None = None
    label: str = ""
    took: float | None = 0.0
    steps: int | None = None
    rms_loss: float | None = None
    labels: tuple[int, ...] | None = None
    rate: float | None = None
    vector: Vector | None = None


@dataclass(frozen=True, eq=False)
class Reply:
    """What was received for a ticket.

    Attributes:
        ticket: the ticket that was returned for the order.
        report: what the client sent; None if it sent no readable report.
        stopped: whether the client stopped at its deadline.
        lost: why there will be no report: the client failed, or disconnected.
        malformed: why the message could not be read.
        at: when it arrived, on the wire's clock; None: when it was received.
    """

    ticket: str
    report: Report | None = None
    stopped: bool = False
    lost: str = ""
    malformed: str = ""
    at: float | None = None


@dataclass(frozen=True)
class ClientScore:
    """A client's evaluation of the global model on its own examples."""

    ticket: str
    loss: float
    accuracy: float | None
    examples: int


class Wire(Protocol):
    """A connection to the clients. No call waits for a client."""

    def present(self) -> Sequence[str]:
        """The names of the clients that can be reached now. A client never changes its name."""

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """Send orders with the global model: a ticket for each, None if sending failed.

        ``offset`` and ``frozen`` are sent with an order that has them.
        """

    def receive(self, tickets: Collection[str]) -> Iterable[Reply]:
        """The replies for these tickets that have arrived since the last call."""

    def request_scores(
        self, clients: Sequence[str], model: Arrays, seconds: float
    ) -> Sequence[str | None]:
        """Ask clients to evaluate a model within a number of seconds: a ticket for each."""

    def receive_scores(self, tickets: Collection[str]) -> Iterable[ClientScore | Reply]:
        """Evaluation results received so far, and a reply for each result that will not arrive."""

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""

    def clock(self) -> float:
        """Seconds on a clock that is never set back."""

    def errors(self) -> int:
        """How many errors of the connection itself were tolerated so far."""
