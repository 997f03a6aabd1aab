"""The jobs that an invitation starts: their steps, their duration, and which are lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.presence import PresenceState
from cafe.randomness import Stream
from cafe.rounds.jobs import Invitation, Mask, Running, Status, Whole, constant_column
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from cafe.task import Task

_EXPECTED = np.int8(Status.EXPECTED)


class SimulatedJobs(NamedTuple):
    """The results of jobs whose clients are clusters, each simulated in its own run.

    Attributes:
        end: when each client has finished. Its report arrives later, by the latency that is drawn
            from the federation.
        steps: how many steps each client has made. A client that has made none never reports.
    """

    end: Floats
    steps: Whole


SimulateJobs = Callable[[Ledger, Invitation, Mask], SimulatedJobs]


@dataclass(eq=False)
class JobStarter:
    """Starts jobs in virtual time. Their random numbers depend on the seed and the invitation only.

    Attributes:
        federation: the clients.
        task: what is learned; None: no model is trained.
        seed: the seed of response times and crashes.
        crash: the probability that a client which has begun a job never reports.
        presence: which clients are present when; None: all clients, always.
        simulate_jobs: simulates the jobs of the invited clients that begin, if the clients are
            clusters; None: the duration of a job is drawn from the federation.
    """

    federation: Federation
    task: Task | None
    seed: int
    crash: float = 0.0
    presence: PresenceState | None = None
    simulate_jobs: SimulateJobs | None = None
    _latency: Stream = field(init=False)
    _crashes: Stream = field(init=False)

    def __post_init__(self) -> None:
        self._latency, self._crashes = Stream(self.seed, "latency"), Stream(self.seed, "crash")
        self._some_absent = bool(np.any(np.less(self.federation.availability, 1)))

    def start(self, policy: Policy, ledger: Ledger, invitation: Invitation) -> Running:
        """The jobs of an invitation, with arrival times that no decision may see."""
        clients, number = invitation.clients, ledger.invitations
        n = len(clients)
        fixed = self.federation.draw(self._latency.at(number), clients)
        leaves: Floats | None = None
        if self.presence is not None:
            leaves = self.presence.leaves(clients, ledger.now)
            # A client that is away never begins.
            fixed = np.where(leaves <= ledger.now, np.inf, fixed)
        simulated = self._simulated(ledger, invitation, fixed)
        if simulated is None:
            steps = planned_steps(self.federation, self.task, policy, invitation)
        else:
            steps = simulated.steps
        latency, trained = fixed, _constant(np.nan, n)
        if self.federation.has_step_time:
            each = self.federation.step_time(clients)
            if invitation.work.partial and policy.deadline is not None and policy.late == "drop":
                steps = steps_in_time(fixed, steps, each, ledger, policy.deadline)
            trained = steps * each
            latency = fixed + trained
        arrival = stop = ledger.now + latency
        if simulated is not None:
            trained = simulated.end - ledger.now
            latency = trained + fixed
            arrival = stop = simulated.end + fixed
        status = _constant(_EXPECTED, n)
        if self._some_absent or leaves is not None:
            absent = np.isinf(fixed)
            if absent.any():
                status = np.where(absent, np.int8(Status.ABSENT), _EXPECTED)
        if self.crash > 0:
            rng = self._crashes.at(number)
            crashes = (rng.random(n) < self.crash) & np.isfinite(arrival)
            # A crash happens at a uniformly random point of the job.
            stop = np.where(crashes, ledger.now + latency * rng.random(n), arrival)
            arrival = np.where(crashes, np.inf, arrival)
            status = np.where(crashes, np.int8(Status.CRASHED), status)
        if simulated is not None and not steps.all():
            gave_up = steps == 0
            stop = np.where(gave_up, simulated.end, stop)
            arrival = np.where(gave_up, np.inf, arrival)
            status = np.where(gave_up, np.int8(Status.CRASHED), status)
        if self.presence is not None and leaves is not None:
            began = status != Status.ABSENT
            self.presence.spend(clients[began], ledger.now)
            left = began & (leaves < stop)
            stop = np.where(left, leaves, stop)
            arrival = np.where(left, np.inf, arrival)
            status = np.where(left, np.int8(Status.CRASHED), status)
        local = _constant(False, n)
        if invitation.local is not None:
            local = invitation.local & ledger.local[clients]
        return Running(
            client=clients,
            start=constant_column(ledger.now, n),
            version=constant_column(ledger.version, n),
            round=constant_column(ledger.round, n),
            local=local,
            invitation=constant_column(number, n),
            steps=steps,
            note=_constant(0.0, n) if invitation.note is None else invitation.note,
            arrival=arrival,
            stop=stop,
            status=status,
            trained=trained,
        )

    def _simulated(
        self, ledger: Ledger, invitation: Invitation, fixed: Floats
    ) -> SimulatedJobs | None:
        if self.simulate_jobs is None:
            return None
        began = np.isfinite(fixed)
        return self.simulate_jobs(ledger, invitation, began)


@lru_cache(maxsize=32, typed=True)
def _constant(value: Any, count: int) -> Any:
    """A column of one value, cached for the next rounds."""
    return constant_column(value, count)


def planned_steps(
    federation: Federation, task: Task | None, policy: Policy, invitation: Invitation
) -> Whole:
    """How many gradient steps each invited client is asked for; 0 where that is not known."""
    work, clients, amount = invitation.work, invitation.clients, invitation.amount
    n = len(clients)
    if work.seconds is not None:
        if not federation.has_step_time:
            raise InputError(
                f"The policy {policy.name} gives clients {work.seconds} seconds of work, but the "
                "federation has no per_step, the time of a step. Give the federation per_step, or "
                "use Work(steps=...)."
            )
        budget = work.seconds if amount is None else amount
        each = federation.step_time(clients)
        fits = np.floor(np.divide(budget, each, out=np.full(n, 1e9), where=each > 0) + 1e-9)
        many: Whole = np.clip(fits, 1, 10**9).astype(np.int64)
        return many
    if work.epochs is None:
        if amount is not None:
            return amount.astype(np.int64)
        return constant_column(np.int64(work.steps), n)
    if task is None:
        if federation.has_step_time:
            raise InputError(
                f"The policy {policy.name} works in epochs, the federation's response times "
                "depend on the number of steps, and without a task the number of steps in an epoch "
                "is not known. Give a task, or use Work(steps=...)."
            )
        return constant_column(np.int64(0), n)
    epochs = work.epochs if amount is None else amount.astype(np.int64)
    return epochs * task.epoch_steps(clients)


def steps_in_time(
    fixed: Floats, steps: Whole, each: Floats, ledger: Ledger, deadline: float
) -> Whole:
    """The steps that each client takes so that its report arrives by the round's deadline.

    A client that cannot do a single step in time does all of its steps, and is late.
    """
    until = ledger.opened + deadline
    left = until - ledger.now
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        fits = np.floor((left - fixed) / each)
        # Rounding may make the quotient wrong by one, so the arrival time is checked.
        fits = np.where(ledger.now + (fixed + fits * each) > until, fits - 1, fits)
        fits = np.where(ledger.now + (fixed + (fits + 1) * each) <= until, fits + 1, fits)
        fewer = (fits >= 1) & (fits < steps)
    return np.where(fewer, np.where(fewer, fits, 1), steps).astype(np.int64)
