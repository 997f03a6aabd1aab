"""A wire for tests: simulated clients in virtual time, with configurable faults."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cafe.federation import Federation, Indices
from cafe.latency.base import Floats
from cafe.live.client_work import ClientContext, Job, LocalModel, TooLateError, Train, Trained, work
from cafe.live.model_layout import Arrays
from cafe.live.wire import ClientScore, Order, Reply, Report
from cafe.presence import PresenceState
from cafe.randomness import Stream
from cafe.task import Task

# What a client can do with an order.
WAYS = (
    "report", "lost", "unreachable", "stopped", "silent", "late", "twice", "malformed",
    "not finite",
)  # fmt: skip

Behave = Callable[[Order], str]
Tamper = Callable[[Report, Order], Report]
Judge = Callable[[str, Arrays], tuple[float, float | None, int] | None]


def random_step(model: Arrays, job: Job) -> Trained:
    """A training function that takes a random step, which depends on client and invitation.

    Example:
        >>> import cafe
        >>> wire = cafe.testing.VirtualWire(
        ...     cafe.Federation(3, cafe.Constant(1.0)), train=cafe.testing.random_step
        ... )
    """
    rng = job.rng()
    moved = {
        name: array + rng.standard_normal(array.shape).astype(array.dtype)
        if array.dtype.kind == "f"
        else array
        for name, array in model.items()
    }
    return Trained(moved, examples=1, loss=1.0, steps=job.work.steps)


def report_always(order: Order) -> str:
    """Every client reports."""
    return "report"


def send_unchanged(report: Report, order: Order) -> Report:
    """Reports are sent unchanged."""
    return report


class _JobTimes(NamedTuple):
    """The duration of a job: gradient steps, seconds of training, seconds until its report."""

    steps: int
    training: float
    took: float


@dataclass(eq=False)
class VirtualWire:
    """Simulated clients that report after the response times that the engine would draw.

    A training function finds the number of steps that the engine would take in
    ``job.settings["steps"]``.

    Attributes:
        federation: response times of the clients, by their number in the server's ledger.
        seed: seed of response times and crashes.
        train: training function of the clients.
        crash: probability that a job that has started is never reported, as in the engine.
        task: what is learned; it gives the number of steps of an epoch. None: epochs have 0 steps.
        notices: fraction of its training time that a client measures on its own clock; the rest
            counts as transfer. With 1 a client stops at its deadline, with 0 it never notices that
            it is late. Without ``per_step`` the whole response is training.
        behave: returns what a client does with an order, one of ``WAYS``.
        tamper: returns what a client sends in place of its report.
        judge: returns a client's evaluation of a model; None: clients do not answer.
        names: names of the clients that are present.
        t: current virtual time.
        local_models: local models of the clients, by name.
        orders: all orders that were sent.
        strays: replies that answer no order, which the next call of ``receive`` returns.
        polls: number of times that the server has asked which clients are present.
        on_poll: called before each of these polls.
        presence: when clients are present; None: always. It is set after the server has registered
            all clients, so that their numbers are those of the federation.
    """

    federation: Federation
    seed: int = 0
    train: Train = random_step
    crash: float = 0.0
    task: Task | None = None
    notices: float = 0.0
    behave: Behave = report_always
    tamper: Tamper = send_unchanged
    judge: Judge | None = None
    names: list[str] = field(default_factory=list)
    t: float = 0.0
    run: str = "the run"
    local_models: dict[str, tuple[LocalModel, ...]] = field(default_factory=dict)
    orders: list[Order] = field(default_factory=list)
    strays: list[Reply] = field(default_factory=list)
    polls: int = 0
    on_poll: Callable[[VirtualWire], None] | None = None
    presence: PresenceState | None = None

    def __post_init__(self) -> None:
        self.names = self.names or [f"c{k:03d}" for k in range(self.federation.clients)]
        self._post: dict[str, list[tuple[float, Reply | ClientScore]]] = {}
        self._events: list[float] = []
        self._asked = 0

    def present(self) -> Sequence[str]:
        self.polls += 1
        if self.on_poll is not None:
            self.on_poll(self)
        if self.presence is None:
            return list(self.names)
        away = self.presence.away(self.t)
        return [name for k, name in enumerate(self.names) if not away[k]]

    def forecast(self, clients: Indices, now: float, until: float) -> Floats:
        """The probability that each client stays present, from ``presence`` itself."""
        if self.presence is None:
            return np.ones(len(clients))
        return self.presence.forecast(clients, now, until)

    def clock(self) -> float:
        return self.t

    def errors(self) -> int:
        """No errors: messages are never sent over a network."""
        return 0

    def sleep(self, seconds: float) -> None:
        """Advance the time to the next event, by at most ``seconds`` and by more than 0."""
        while self._events and self._events[0] <= self.t:
            heapq.heappop(self._events)
        until = min([self.t + seconds, *self._events[:1]])
        self.t = float(max(until, np.nextafter(self.t, np.inf)))

    def send(self, orders: Sequence[Order], model: Arrays) -> Sequence[str | None]:
        """Accept orders. Replies are computed at once, and delivered when their time has come."""
        self.orders += orders
        numbers = np.array([order.number for order in orders]) % self.federation.clients
        address = orders[0].invitation
        fixed = self.federation.draw(Stream(self.seed, "latency").at(address), numbers)
        rng = Stream(self.seed, "crash").at(address)
        crashes, when = rng.random(len(orders)) < self.crash, rng.random(len(orders))
        each = self.federation.step_time(numbers)
        leaves = np.full(len(orders), np.inf)
        if self.presence is not None:
            fixed = np.where(self.presence.away(self.t)[numbers], np.inf, fixed)
            began = np.isfinite(fixed)
            leaves[began] = self.presence.leaves(numbers[began], self.t) - self.t
            self.presence.spend(numbers[began], self.t)
        tickets = []
        for k, order in enumerate(orders):
            steps = self._steps(order, float(fixed[k]), float(each[k]))
            training = steps * float(each[k]) if self.federation.has_step_time else None
            took = float(fixed[k]) + (0.0 if training is None else training)
            times = _JobTimes(steps, took if training is None else training, took)
            crash_after = took * when[k] if crashes[k] else np.inf
            ends = leaves[k] if leaves[k] < min(took, crash_after) else crash_after
            tickets.append(self._accept(order, model, times, ends if ends < np.inf else None))
        return tickets

    def _steps(self, order: Order, fixed: float, each: float) -> int:
        """The number of steps that the engine would take for an order; 0 if it is unknown."""
        work, steps = order.work, order.work.steps
        if work.seconds is not None:
            steps = max(int(work.seconds / each + 1e-9), 1) if each > 0 else 1
        elif work.epochs is not None:
            own = np.array([order.number])
            steps = 0 if self.task is None else work.epochs * int(self.task.epoch_steps(own)[0])
        if work.partial and order.seconds is not None and each > 0 and fixed < np.inf:
            fits = max(int((order.seconds - fixed) // each), 0)
            while fits and fixed + fits * each > order.seconds:
                fits -= 1
            while fits < steps and fixed + (fits + 1) * each <= order.seconds:
                fits += 1
            steps = fits if 1 <= fits < steps else steps
        return steps

    def _accept(
        self, order: Order, model: Arrays, times: _JobTimes, crash_after: float | None
    ) -> str | None:
        way, took = self.behave(order), times.took
        self._asked += 1
        ticket = f"{self._asked:06d}"
        if way == "unreachable" or np.isinf(took):
            return None
        if way == "silent":
            return ticket
        if crash_after is not None or way == "lost":
            self._put(
                ticket,
                took / 2 if crash_after is None else crash_after,
                Reply(ticket, lost="it crashed"),
            )
        elif way == "stopped":
            self._put(ticket, took, Reply(ticket, stopped=True))
        elif way == "malformed":
            self._put(ticket, took, Reply(ticket, malformed="it is no report at all"))
        else:
            self._train_and_reply(ticket, order, model, times, way)
        return ticket

    def _train_and_reply(
        self, ticket: str, order: Order, model: Arrays, times: _JobTimes, way: str
    ) -> None:
        clock, seen, took = [0.0], times.training * self.notices, times.took

        def train(start: Arrays, job: Job) -> Any:
            if clock[0] + seen > job.until and not job.work.partial:
                clock[0] = job.until
                raise TooLateError
            clock[0] += seen
            return self.train(start, job)

        context = ClientContext(
            run=self.run,
            settings={"steps": times.steps},
            label=f"<b>{order.client}</b>",
            clock=lambda: clock[0],
        )
        kept = self.local_models.get(order.client, ())
        found, self.local_models[order.client] = work(
            train, order, model, context, local_models=kept
        )
        if found is None:
            assert order.seconds is not None
            self._put(ticket, order.seconds, Reply(ticket, stopped=True))
            return
        report = self.tamper(found, order)
        if way == "not finite":
            bad = {name: np.full_like(array, np.nan) for name, array in report.update.items()}
            report = Report(bad, report.invitation, report.version, report.carried)
        if way == "late":
            took += 1e9
        for _ in range(2 if way == "twice" else 1):
            self._put(ticket, took, Reply(ticket, report))

    def _put(self, ticket: str, after: float, reply: Reply | ClientScore) -> None:
        self._post.setdefault(ticket, []).append((self.t + after, reply))
        heapq.heappush(self._events, self.t + after)

    def receive(self, tickets: Collection[str]) -> Sequence[Reply]:
        """Replies that have arrived, and stray ones."""
        strays, self.strays = self.strays, []
        return [*strays, *self._due(tickets)]

    def _due(self, tickets: Collection[str]) -> list[Any]:
        found = []
        for ticket in sorted(tickets):
            sent = self._post.get(ticket, [])
            found += [reply for moment, reply in sent if moment <= self.t]
            self._post[ticket] = [(moment, reply) for moment, reply in sent if moment > self.t]
        return found

    def request_scores(
        self, clients: Sequence[str], model: Arrays, seconds: float
    ) -> Sequence[str | None]:
        """Evaluation results come after a second."""
        tickets = []
        for name in clients:
            self._asked += 1
            tickets.append(f"{self._asked:06d}")
            said = None if self.judge is None else self.judge(name, model)
            if said is not None:
                self._put(tickets[-1], 1.0, ClientScore(tickets[-1], *said))
        return tickets

    def receive_scores(self, tickets: Collection[str]) -> Sequence[ClientScore | Reply]:
        """Evaluation results received so far."""
        return self._due(tickets)
