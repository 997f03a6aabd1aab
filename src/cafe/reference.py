"""The simulator again, slow and obvious: read it first.

One client at a time, one event at a time, every report trained as soon as it comes in. It shares
with the engine only what is random (each draw has an address, see ``randomness``; batches are
drawn so too) and the policies.
Tests hold the engine to it: the books to the bit, the model to rounding.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cafe.engine.batches import Batches
from cafe.errors import InputError
from cafe.federation import Federation
from cafe.randomness import Stream
from cafe.rounds.history import Curve, History
from cafe.rounds.jobs import Invitation, Jobs, Reports, Work
from cafe.rounds.ledger import Ledger, Waiting
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import COMMIT, HOLD, LOCAL, RUN, Closed, Policy, Verdict, Wait
from cafe.task import Task


@dataclass(eq=False)
class Job:
    """One client's piece of work."""

    client: int
    start: float
    version: int
    round: int
    local: bool
    arrival: float  # when its report comes, if ever
    stop: float  # when the client stops working on it
    work: Work
    before: Job | None  # the job whose local model it goes on from
    began: int  # the version of the global model that this goes back to
    model: Any = None  # what it reports
    base: Any = None  # the global model that this goes back to
    loss: float = np.nan  # on its first batch there


@dataclass(eq=False)
class Kept:
    """What a client keeps from earlier rounds, and the jobs in it whose fate is open."""

    job: Job  # the last one
    held: bool
    local: bool
    pending: int
    fate: Fate
    charge: float
    spent: float


class Reference:
    """A run, one object per job. :meth:`step` plays one round."""

    def __init__(
        self,
        federation: Federation,
        policy: Policy,
        task: Task | None = None,
        *,
        seed: int = 0,
        crash: float = 0.0,
    ) -> None:
        n = federation.clients
        self.federation, self.policy, self.task = federation, policy, task
        self.seed, self.crash = seed, crash
        examples = federation.examples if task is None else task.shards.counts
        self.examples = np.broadcast_to(examples, n).astype(np.int64)
        self.now, self.round, self.version = 0.0, 0, 0
        self.last_start, self.last_round = [0.0] * n, [-1] * n
        self.merged, self.weight = [0] * n, [0.0] * n
        self.area, self.settled = [0.0] * n, [0.0] * n
        self.running: list[Job] = []
        self.kept: dict[int, Kept] = {}
        self.state: Any = None
        self.models: list[Any] = []
        self.moments: tuple[Any, ...] = ()
        self.reports: Reports | None = None
        self.outcomes: list[Outcome] = []
        if task is not None:
            self.models.append(task.learner.start(Stream(seed, "start").at(0)))

    def ledger(self, opened: float) -> Ledger:
        """What the server knows now."""
        ledger = Ledger.new(self.examples)
        ledger.now, ledger.opened = self.now, opened
        ledger.round, ledger.version, ledger.state = self.round, self.version, self.state
        ledger.last_start = np.array(self.last_start)
        ledger.last_round = np.array(self.last_round)
        ledger.merged = np.array(self.merged)
        for job in self.running:
            ledger.busy[job.client] = True
        for client, kept in self.kept.items():
            ledger.local[client] = kept.local
        return ledger

    def step(self) -> Outcome:
        """Play one round."""
        opened = self.now
        rng = Stream(self.seed, "policy").at(self.round)
        new = self.start(self.policy.invite(self.ledger(opened), rng))
        jobs = [*self.running, *new]
        reported, verdict, early = self.wait(jobs, len(new), opened)
        outcome = Outcome(self.round, opened, self.now, verdict is COMMIT)
        outcome.invited, outcome.reports = len(new), len(reported)
        for job in reported:
            self.train(job)

        used: dict[Job, float] = {}
        self.reports = None
        if verdict is COMMIT:
            used = self.merge([job for job in jobs if job in reported], opened)
        closed = Closed(
            outcome.succeeded,
            _columns(Jobs, jobs),
            np.array([job in reported for job in jobs], dtype=bool),
            np.array([job in used for job in jobs], dtype=bool),
            np.array([job.arrival if job in reported else np.nan for job in jobs]),
            self.reports,
        )
        carried = self.policy.carry(self.ledger(opened), closed)
        codes = np.broadcast_to(np.asarray(carried.jobs, dtype=int), len(jobs))
        stays = np.broadcast_to(carried.kept, self.federation.clients)

        running, keeping, wasted, ended, absent = [], [], [], [], []
        for job, code in zip(jobs, codes.tolist(), strict=True):
            never = job not in reported and job.arrival == np.inf
            lost = never and (job.stop <= self.now or job.stop == np.inf)
            if job not in reported and not lost and code & RUN:
                running.append(job)
                continue
            ended.append(job)
            if job in reported and code & (HOLD | LOCAL):
                keeping.append((job, code))
            elif job not in used:
                wasted.append(job)
                if job in reported:
                    outcome.fates[Fate.OVER if outcome.succeeded else Fate.FAILED] += 1
                elif lost:
                    outcome.fates[Fate.ABSENT if job.stop == np.inf else Fate.CRASHED] += 1
                    absent += [job] if job.stop == np.inf else []
                elif job.arrival <= self.now:  # with the last one of a target, and one too many
                    outcome.fates[Fate.OVER] += 1
                else:
                    outcome.fates[Fate.CANCELLED if early else Fate.LATE] += 1
        outcome.work = float(np.sum([self.spent(job) for job in ended]))
        outcome.waste = float(np.sum([self.now - job.start for job in wasted]))
        outcome.processing_waste = float(np.sum([self.spent(job) for job in wasted]))
        outcome.absent_waste = float(np.sum([self.now - job.start for job in absent]))

        self.book_merge(outcome, used)
        self.drop(
            outcome,
            [
                client
                for client in sorted(self.kept)
                if client not in {job.client for job, _ in keeping}
                and client not in {job.client for job in running if job.local}  # it goes on
                and not stays[client]
            ],
        )
        self.drop(outcome, [job.client for job, _ in keeping if not job.local])
        for job, code in keeping:
            self.keep(outcome, job, code, job in used)
        self.running = running
        self.round += 1
        self.version += int(outcome.succeeded)
        outcome.version = self.version
        outcome.age = self.now - float(np.mean(self.last_start))
        self.outcomes.append(outcome)
        if self.policy.observe is not None:
            self.state = self.policy.observe(self.ledger(opened), outcome, closed)
        return outcome

    def start(self, invitation: Invitation) -> list[Job]:
        """Draw the invited clients' response times."""
        clients = invitation.clients
        latency = self.federation.draw(Stream(self.seed, "latency").at(self.round), clients)
        rng = Stream(self.seed, "crash").at(self.round)
        crashes, when = rng.random(len(clients)) < self.crash, rng.random(len(clients))
        jobs = []
        for k, client in enumerate(clients.tolist()):
            local = invitation.local is not None and bool(invitation.local[k])
            local = local and client in self.kept and self.kept[client].local
            arrival = stop = self.now + float(latency[k])
            if crashes[k] and arrival < np.inf:
                arrival, stop = np.inf, self.now + float(latency[k]) * float(when[k])
            before = self.kept[client].job if local else None
            began = self.version if before is None else before.began
            jobs.append(
                Job(client, self.now, self.version, self.round, local, arrival, stop,
                    invitation.work, before, began)
            )  # fmt: skip
        return jobs

    def wait(self, jobs: list[Job], invited: int, opened: float) -> tuple[list[Job], Verdict, bool]:
        """Let reports come in, in order of time and then of client, as long as the policy waits."""
        queue = [(job.arrival, job.client, k) for k, job in enumerate(jobs)]
        heapq.heapify(queue)
        reported: list[Job] = []
        until = np.inf
        while True:
            waiting = Waiting(len(reported), invited, len(jobs) - len(reported))
            answer = self.policy.close(self.ledger(opened), waiting)
            if not isinstance(answer, Wait):
                return reported, answer, self.now < until
            until = answer.until
            count, moment = len(reported), self.now
            if answer.reports is not None and answer.reports <= count:
                raise InputError(f"{self.policy.name} waits for reports that have come.")
            while queue and queue[0][0] <= until and len(reported) != answer.reports:
                self.now, _, k = heapq.heappop(queue)
                reported.append(jobs[k])
            if len(reported) != answer.reports:
                self.now = until
            if not self.now >= moment:
                raise InputError(f"{self.policy.name} waits for a moment that has passed.")

    def train(self, job: Job) -> None:
        """Take a job's steps, one after the other, from the global or the client's own model."""
        if self.task is None:
            return
        task, client = self.task, np.array([job.client])
        job.base = self.models[job.began]
        model = job.base if job.before is None else job.before.model
        rate = task.rate_at(job.round, job.version)
        walk = Batches(task, self.seed).walks(
            client, np.array([[job.round]]), np.array([[rate]]), job.work
        )
        if job.before is None:
            loss = task.learner.losses(model, task.data, walk.rows[0, 0])
            job.loss = float((loss * walk.weight[0, 0]).sum() / walk.weight[0, 0].sum())
        else:
            job.loss = job.before.loss
        for rows, weight, step in zip(walk.rows[0], walk.weight[0], walk.rate[0], strict=True):
            model = model - task.learner.gradient(model, task.data, rows, weight) * float(step)
        job.model = model

    def merge(self, reported: list[Job], opened: float) -> dict[Job, float]:
        """Move the model; which jobs were used, with their coefficients."""
        newer = {job.client for job in reported}
        held = [k for c, k in sorted(self.kept.items()) if k.held and c not in newer]
        jobs = [*reported, *(k.job for k in held)]
        reports = _columns(Reports, jobs, arrived=np.array([job.arrival for job in jobs]))
        reports.version[:] = [job.began for job in jobs]
        reports.local[len(reported) :] = True
        save = self.task.learner.save if self.task is not None else None
        if save is not None and "updates" in self.policy.needs:
            rows = [save(job.model - job.base) for job in jobs]
            none = np.empty((0, len(save(self.models[self.version]))), dtype=np.float32)
            reports = replace(reports, updates=np.stack(rows) if rows else none)
        if save is not None and "losses" in self.policy.needs:
            reports = replace(reports, losses=np.array([job.loss for job in jobs]))
        self.reports = reports
        merge = self.policy.merge(self.ledger(opened), reports)
        used = {j: float(c) for j, c in zip(jobs, merge.coefficient, strict=True) if c != 0}
        if self.task is not None:
            model = self.models[-1] * merge.keep
            for job, coefficient in used.items():
                what = job.model if merge.of == "model" else job.model - job.base
                model = model + what * coefficient
            if self.task.server is not None:
                step, self.moments = self.task.server.step(model - self.models[-1], self.moments)
                model = self.models[-1] + step
            self.models.append(model)
        return used

    def spent(self, job: Job) -> float:
        """For how long its client has worked on a job; one that is absent counts as late."""
        return min(job.stop, self.now) - job.start

    def book_merge(self, outcome: Outcome, used: dict[Job, float]) -> None:
        """Reset ages, and settle the fate of all that is in the update."""
        outcome.used = len(used)
        fresh = [job for job in used if not self.is_kept(job)]
        self.drop(outcome, [job.client for job in fresh if not job.local])
        for job, coefficient in used.items():
            client, kept = job.client, self.kept.get(job.client)
            since = self.now - self.settled[client]
            self.area[client] += since * (
                (self.now + self.settled[client]) / 2 - self.last_start[client]
            )
            self.settled[client] = self.now
            self.last_start[client] = job.start
            self.last_round[client] = self.round
            self.merged[client] += 1
            self.weight[client] += coefficient
            fate = Fate.FRESH if job.began == self.version else Fate.STALE
            outcome.fates[fate] += (job in fresh) + (0 if kept is None else kept.pending)
            if kept is not None:
                del self.kept[client]

    def is_kept(self, job: Job) -> bool:
        """Whether a job's report was kept in an earlier round."""
        return job.client in self.kept and self.kept[job.client].job is job

    def keep(self, outcome: Outcome, job: Job, code: int, used: bool) -> None:
        """Keep a client's report, its local model, or both."""
        before = self.kept.get(job.client)
        pending, charge, spent = (
            (0, 0.0, 0.0) if before is None else (before.pending, before.charge, before.spent)
        )
        if not used:
            pending += 1
            charge, spent = charge + (self.now - job.start), spent + self.spent(job)
        fate = Fate.OVER if outcome.succeeded else Fate.FAILED
        self.kept[job.client] = Kept(
            job, bool(code & HOLD), bool(code & LOCAL), pending, fate, charge, spent
        )

    def drop(self, outcome: Outcome, clients: list[int]) -> None:
        """Throw away what clients have kept."""
        kept = [self.kept.pop(client) for client in clients if client in self.kept]
        lost = [k for k in kept if k.pending]
        outcome.waste += float(np.sum([k.charge for k in lost]))
        outcome.processing_waste += float(np.sum([k.spent for k in lost]))
        for k in lost:
            outcome.fates[k.fate] += k.pending

    def history(self) -> History:
        """What has happened so far."""
        ages = []
        for area, settled, start in zip(self.area, self.settled, self.last_start, strict=True):
            rest = (self.now - settled) * ((self.now + settled) / 2 - start)
            ages.append((area + rest) / self.now)
        columns = {f.name: np.array([getattr(o, f.name) for o in self.outcomes])
                   for f in fields(Outcome)}  # fmt: skip
        curve, model = None, None
        if self.task is not None:
            test = self.task.held if self.task.test is None else self.task.test
            score = self.task.learner.score(self.models[-1], test)
            accuracy = np.nan if score.accuracy is None else score.accuracy
            curve = Curve(
                np.array([self.round]), np.array([self.now]), np.array([self.version]),
                np.array([columns["work"].sum()]), np.array([score.loss]), np.array([accuracy]),
            )  # fmt: skip
            model = self.task.learner.save(self.models[-1])
        return History(
            str(self.policy), self.seed, columns, np.array(ages), np.array(self.merged),
            np.array(self.weight), len(self.running) + sum(k.pending for k in self.kept.values()),
            curve, model,
        )  # fmt: skip


def simulate(
    federation: Federation,
    policy: Policy,
    task: Task | None = None,
    *,
    rounds: int,
    seed: int = 0,
    crash: float = 0.0,
) -> History:
    """Play rounds, as :func:`cafe.engine.simulate` does."""
    run = Reference(federation, policy, task, seed=seed, crash=crash)
    for _ in range(rounds):
        run.step()
    return run.history()


def _columns(kind: Any, jobs: list[Job], **more: Any) -> Any:
    """Jobs as arrays, as policies see them."""
    return kind(
        client=np.array([job.client for job in jobs], dtype=np.intp),
        start=np.array([job.start for job in jobs], dtype=float),
        version=np.array([job.version for job in jobs], dtype=np.int64),
        round=np.array([job.round for job in jobs], dtype=np.int64),
        local=np.array([job.local for job in jobs], dtype=bool),
        **more,
    )
