"""The random part of the reference's jobs: how long each takes, and whether it is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.federation import Federation
from cafe.presence import PresenceState
from cafe.randomness import Stream
from cafe.rounds.jobs import Invitation, Work
from cafe.task import Task


@dataclass(frozen=True)
class JobDraw:
    """The steps and times of one job, and whether it is lost.

    Attributes:
        steps: gradient steps that it takes.
        seconds: the seconds of training.
        arrival: when its report comes; infinite if it never does.
        stop: when the client stops working on it.
        absent: whether it never began.
        crashes: whether it is lost at ``stop``.
    """

    steps: int
    seconds: float
    arrival: float
    stop: float
    absent: bool
    crashes: bool


@dataclass(eq=False)
class JobDraws:
    """Draws the jobs of invitations, one client at a time.

    Attributes:
        federation: the clients.
        task: what is learned; None: no model is trained.
        seed: the seed of response times and crashes.
        crash: the probability that a client which has begun a job never reports.
        presence: which clients are present when; None: all clients, always.
    """

    federation: Federation
    task: Task | None
    seed: int
    crash: float
    presence: PresenceState | None

    def draw(
        self, number: int, invitation: Invitation, now: float, until: float | None
    ) -> list[JobDraw]:
        """The jobs of an invitation, in the order of its clients.

        Args:
            number: the number of the invitation, which is the index of its random numbers.
            invitation: which clients are invited, and for which work.
            now: when the jobs start.
            until: the time by which clients must report, if they may do less work to be in time;
                None: they do all of their work.
        """
        clients = invitation.clients
        delays = self.federation.draw(Stream(self.seed, "latency").at(number), clients)
        rng = Stream(self.seed, "crash").at(number)
        crashes, when = rng.random(len(clients)) < self.crash, rng.random(len(clients))
        drawn = []
        for k, client in enumerate(clients.tolist()):
            amount = None if invitation.amount is None else invitation.amount[k].item()
            delay = float(delays[k])
            steps, seconds = self.amount(client, delay, amount, invitation.work, now, until)
            latency = delay if seconds is None else delay + seconds
            arrival = stop = now + latency
            absent = delay == np.inf
            if self.presence is not None and self.presence.away(now)[client]:
                absent, arrival, stop = True, np.inf, np.inf
            lost = bool(crashes[k]) and arrival < np.inf
            if lost:
                arrival, stop = np.inf, now + latency * float(when[k])
            if self.presence is not None and not absent:
                leaves = float(self.presence.leaves(np.array([client]), now)[0])
                if leaves < stop:
                    lost, arrival, stop = True, np.inf, leaves
            trained = arrival - now if seconds is None else seconds
            drawn.append(JobDraw(steps, trained, arrival, stop, absent, lost))
        if self.presence is not None:  # after all draws: presence must not depend on their order
            pairs = zip(clients.tolist(), drawn, strict=True)
            begun = [client for client, job in pairs if not job.absent]
            self.presence.spend(np.array(begun, dtype=np.intp), now)
        return drawn

    def amount(
        self, client: int, delay: float, amount: Any, work: Work, now: float, until: float | None
    ) -> tuple[int, float | None]:
        """How many steps a client takes, and for how many seconds; None if that is not known."""
        each = float(self.federation.step_time(np.array([client]))[0])
        steps = work.steps if amount is None else amount
        if work.seconds is not None:
            budget = work.seconds if amount is None else amount
            steps = max(int(min(budget / each + 1e-9, 1e9)), 1) if each > 0 else 10**9
        if work.epochs is not None:
            epochs = work.epochs if amount is None else amount
            steps = 0
            if self.task is not None:
                held, batch = len(self.task.shards[client]), self.task.batch
                steps = epochs * (1 if batch is None else -(-held // batch))
        if not self.federation.has_step_time:
            return int(steps), None
        if work.partial and until is not None and each > 0 and delay < np.inf:
            fits = int(min(max((until - now - delay) // each, 0), 10**9))
            while fits and now + (delay + fits * each) > until:
                fits -= 1
            while fits < steps and now + (delay + (fits + 1) * each) <= until:
                fits += 1
            if 1 <= fits < steps:
                steps = fits
        return int(steps), steps * each
