"""The reference's loop: one client at a time, one event at a time."""

from __future__ import annotations

import heapq
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from cafe.control import Controller, Fixed, display_name
from cafe.federation import Federation
from cafe.fitting.observations import Observations
from cafe.randomness import Stream
from cafe.reference.reference_jobs import KeptJob, ReferenceJob, columns, look, total
from cafe.reference.trainer import Trainer
from cafe.rounds import answer_checks
from cafe.rounds.answers import COMMIT, HOLD, LOCAL, RUN, Verdict
from cafe.rounds.history import Curve, History
from cafe.rounds.jobs import Invitation, Jobs, Reports, Work
from cafe.rounds.ledger import Ledger, LedgerColumns, ModelScore
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting
from cafe.task import Task


class Reference:
    """A run, one object per job. :meth:`step` plays one round."""

    def __init__(
        self,
        federation: Federation,
        policy: Policy | Controller,
        task: Task | None = None,
        *,
        seed: int = 0,
        crash: float = 0.0,
    ) -> None:
        n = federation.clients
        self.federation, self.task = federation, task
        self.controller = Fixed(policy) if isinstance(policy, Policy) else policy
        self.seed, self.crash = seed, crash
        examples = federation.examples if task is None else task.shards.counts
        self.examples = np.broadcast_to(examples, n).astype(np.int64)
        self.now, self.round, self.version = 0.0, 0, 0
        self.invitations, self.closes = 0, 0
        self.last_start, self.last_round = [0.0] * n, [-1] * n
        self.merged, self.weight = [0] * n, [0.0] * n
        self.area, self.settled = [0.0] * n, [0.0] * n
        self.running: list[ReferenceJob] = []
        self.kept: dict[int, KeptJob] = {}
        self.state: Any = None
        self.score: ModelScore | None = None
        self.responses: list[tuple[int, float, float]] = []
        self.trainer = None if task is None else Trainer(task, seed)
        self.bytes = 0 if self.trainer is None else 4 * self.trainer.parameters
        self.reports: Reports | None = None
        self.outcomes: list[Outcome] = []
        self.open_jobs: list[ReferenceJob] = []
        self.presence, self.away = None, np.zeros(n, dtype=bool)
        if federation.presence is not None:
            self.presence = federation.presence.begin(n, seed)
        self.policy = self.choose()

    def set_model(self, model: Any) -> None:
        """Replace the server's model by one from outside, as a new version."""
        self.version += 1
        if self.trainer is not None:
            self.trainer.set_model(model)

    def choose(self) -> Policy:
        """The policy of the next round."""
        if isinstance(self.controller, Fixed):
            return self.controller.policy
        seen = None
        if self.responses:
            clients, times, limits = zip(*self.responses[-20_000:], strict=True)
            seen = Observations([*times], [*limits], [f"{client}" for client in clients])
        return self.controller(self.ledger(self.now, self.running), seen)

    def ledger(
        self, opened: float, working: list[ReferenceJob], decision: str = "", at: int = 0
    ) -> Ledger:
        """What the server knows now, with the random numbers of a decision."""
        known = LedgerColumns.new(self.examples)
        known.last_start[:] = self.last_start
        known.last_round[:] = self.last_round
        known.merged[:] = self.merged
        for job in working:
            known.busy[job.client] = True
        for client, kept in self.kept.items():
            known.local[client] = kept.local
        known.away[:] = self.away  # as it was when the round opened
        ledger = Ledger(known)
        if decision and "forecasts" in self.policy.needs:  # a controller has none
            ledger.forecasts = self.forecast
        ledger.now, ledger.opened, ledger.invitations = self.now, opened, self.invitations
        ledger.round, ledger.version, ledger.state = self.round, self.version, self.state
        ledger.score, ledger.working = self.score, len(working)
        if decision:
            ledger.seed_decision(Stream(self.seed, decision), at)
        return ledger

    def forecast(self, clients: Any, until: float) -> Any:
        """How likely each client is to stay until a time."""
        if self.presence is None:
            return np.ones(len(clients))
        return self.presence.forecast(clients, self.now, until)

    def step(self) -> Outcome:
        """Play one round."""
        if self.presence is not None:
            self.away = self.presence.away(self.now)
        policy = self.policy = self.choose()
        if "scores" in policy.needs:
            self.rate(policy)
        while self.presence is not None and sum(~self.away) < policy.quorum:
            self.now = self.presence.next_change(self.now)
            self.away = self.presence.away(self.now)
        opened = self.now
        ledger = self.ledger(opened, self.running, "policy", self.round)
        first = answer_checks.check_invitation(
            policy, "invite", ledger, policy.invite(ledger, ledger.rng)
        )
        outcome = Outcome(self.round, opened, self.now, False)
        jobs = [*self.running, *self.start(first, opened, [], outcome)]
        reported, verdict, early = self.wait(jobs, opened, outcome)
        self.open_jobs = jobs
        outcome.closed, outcome.reports = self.now, len(reported)
        outcome.invited = len(jobs) - len(self.running)
        shares = [job.work.upload for job in reported]
        weight = sum(share * shares.count(share) for share in sorted(set(shares)))
        outcome.bytes_up = float(weight) * self.bytes
        if self.trainer is not None:
            for job in reported:
                self.trainer.train(job)

        used: dict[ReferenceJob, float] = {}
        self.reports, spoilt = None, False
        if verdict is COMMIT:
            spoilt, used = self.merge([job for job in jobs if job in reported], opened)
        outcome.succeeded = verdict is COMMIT and not spoilt
        working = [job for job in jobs if job not in reported]
        closed = Closed(
            outcome.succeeded,
            np.array([job in reported for job in jobs], dtype=bool),
            None if spoilt else self.reports,
            lambda: (
                columns(Jobs, jobs),
                np.array([job in used for job in jobs], dtype=bool),
                np.array([job.arrival if job in reported else np.nan for job in jobs]),
            ),
        )
        ledger = self.ledger(opened, working, "policy carry", self.round)
        n = self.federation.clients
        carried = answer_checks.check_carry(policy, policy.carry(ledger, closed), len(jobs), n)
        codes = np.broadcast_to(np.asarray(carried.jobs, dtype=int), len(jobs))
        stays = np.broadcast_to(np.asarray(carried.kept) & (not spoilt), n)

        running, keeping, wasted, ended, absent = [], [], [], [], []
        last = {job.client: job for job in jobs if job in reported}  # of a client's reports
        for job, code in zip(jobs, codes.tolist(), strict=True):
            lost = job not in reported and (job.absent or (job.crashes and job.stop <= self.now))
            told = job in reported or not (lost or code & RUN)
            if told and self.now > job.start:  # a round of no length says nothing
                took = job.arrival - job.start if job.arrival <= self.now else np.nan
                self.responses.append((job.client, took, self.now - job.start))
            if job not in reported and not lost and code & RUN:
                running.append(job)
                continue
            ended.append(job)
            kept = job in reported and code & (HOLD | LOCAL) and not spoilt
            if kept and last[job.client] is job:
                keeping.append((job, code))
            elif job not in used:
                wasted.append(job)
                if job in reported:
                    outcome.fates[Fate.OVER if outcome.succeeded else Fate.FAILED] += 1
                elif lost:
                    outcome.fates[Fate.ABSENT if job.absent else Fate.CRASHED] += 1
                    absent += [job] if job.absent else []
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
        if policy.observe is not None:
            ledger = self.ledger(opened, running, "policy observe", self.round - 1)
            self.state = answer_checks.check_state(policy, policy.observe(ledger, outcome, closed))
        return outcome

    def start(
        self, invitation: Invitation, opened: float, jobs: list[ReferenceJob], outcome: Outcome
    ) -> list[ReferenceJob]:
        """Draw the invited clients' response times."""
        clients, number = invitation.clients, self.invitations
        self.invitations += 1
        draws = self.federation.draw(Stream(self.seed, "latency").at(number), clients)
        rng = Stream(self.seed, "crash").at(number)
        crashes, when = rng.random(len(clients)) < self.crash, rng.random(len(clients))
        new = []
        for k, client in enumerate(clients.tolist()):
            local = invitation.local is not None and bool(invitation.local[k])
            local = local and client in self.kept and self.kept[client].local
            local = local and client not in {job.client for job in jobs}
            amount = None if invitation.amount is None else invitation.amount[k].item()
            fixed = float(draws[k])
            steps, seconds = self.amount(client, fixed, amount, invitation.work, opened)
            latency = fixed if seconds is None else fixed + seconds
            arrival = stop = self.now + latency
            absent = fixed == np.inf
            if self.presence is not None and self.presence.away(self.now)[client]:
                absent, arrival, stop = True, np.inf, np.inf
            lost = bool(crashes[k]) and arrival < np.inf
            if lost:
                arrival, stop = np.inf, self.now + latency * float(when[k])
            if self.presence is not None and not absent:
                leaves = float(self.presence.leaves(np.array([client]), self.now)[0])
                if leaves < stop:
                    lost, arrival, stop = True, np.inf, leaves
            before = self.kept[client].job if local else None
            began = self.version if before is None else before.began
            new.append(
                ReferenceJob(
                    client=client,
                    start=self.now,
                    version=self.version,
                    round=self.round,
                    local=local,
                    invitation=number,
                    steps=steps,
                    note=0.0 if invitation.note is None else float(invitation.note[k]),
                    arrival=arrival,
                    stop=stop,
                    absent=absent,
                    crashes=lost,
                    seconds=arrival - self.now if seconds is None else seconds,
                    work=invitation.work,
                    before=before,
                    began=began,
                    offset=None if self.trainer is None else self.trainer.offset(client),
                    frozen=None if self.trainer is None else self.trainer.frozen,
                )
            )
        if self.presence is not None:  # after all: who is there must not depend on their order
            begun = np.array([job.client for job in new if not job.absent], dtype=np.intp)
            self.presence.spend(begun, self.now)
        sent = len([job for job in new if not job.absent])
        outcome.downloads += sent
        outcome.bytes_down += sent * invitation.work.download * self.bytes
        more = [job for job in new if not job.absent and job.offset is not None]
        outcome.bytes_down += len(more) * self.bytes
        if self.trainer is not None and self.trainer.has_vectors and any(j.local for j in new):
            raise answer_checks.local_models_error(self.policy)
        return new

    def amount(
        self, client: int, fixed: float, amount: Any, work: Work, opened: float
    ) -> tuple[int, float | None]:
        """How many steps a client takes, and how long they last; None: nobody says how long."""
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
        deadline = self.policy.deadline if self.policy.late == "drop" else None
        if work.partial and deadline is not None and each > 0 and fixed < np.inf:
            fits = int(min(max((opened + deadline - self.now - fixed) // each, 0), 10**9))
            while fits and self.now + (fixed + fits * each) > opened + deadline:
                fits -= 1
            while fits < steps and self.now + (fixed + (fits + 1) * each) <= opened + deadline:
                fits += 1
            if 1 <= fits < steps:
                steps = fits
        return int(steps), steps * each

    def wait(
        self, jobs: list[ReferenceJob], opened: float, outcome: Outcome
    ) -> tuple[list[ReferenceJob], Verdict, bool]:
        """Let reports come in, in order of time and then of client, as long as the policy waits.

        Jobs that are invited meanwhile are added to ``jobs``.
        """
        queue = [(job.arrival, job.client, k) for k, job in enumerate(jobs)]
        heapq.heapify(queue)
        reported: list[ReferenceJob] = []
        until, policy = np.inf, self.policy
        before = len(self.running)
        while True:
            working = [job for job in jobs if job not in reported]
            ledger = self.ledger(opened, working, "policy close", self.closes)
            self.closes += 1
            seen = [job for job in jobs if job in reported]
            waiting = Waiting(
                len(reported), len(jobs) - before, len(jobs) - len(reported), partial(look, seen)
            )
            answer = answer_checks.check_close(policy, policy.close(ledger, waiting))
            if isinstance(answer, Verdict):
                return reported, answer, self.now < until
            if isinstance(answer, Invitation):
                more = answer_checks.check_more(policy, ledger, answer)
                for job in self.start(more, opened, jobs, outcome):
                    heapq.heappush(queue, (job.arrival, job.client, len(jobs)))
                    jobs.append(job)
                continue
            until = answer.until
            count, moment = len(reported), self.now
            if answer.reports is not None and answer.reports <= count:
                raise answer_checks.past_wait_error(policy, self.now, answer)
            while queue and queue[0][0] <= min(until, 1e308) and len(reported) != answer.reports:
                arrival, _, k = heapq.heappop(queue)
                self.now = max(self.now, arrival)  # it may have come before the round opened
                reported.append(jobs[k])
            if len(reported) != answer.reports:
                self.now = until
            if not self.now >= moment or (self.now == moment and len(reported) == count):
                raise answer_checks.past_wait_error(policy, moment, answer)

    def merge(
        self, reported: list[ReferenceJob], opened: float
    ) -> tuple[bool, dict[ReferenceJob, float]]:
        """Move the model: whether that would have spoilt it, and which jobs were used.

        Jobs that were used come with their coefficients.
        """
        policy, trainer = self.policy, self.trainer
        newer = {job.client for job in reported}
        held = [k for c, k in sorted(self.kept.items()) if k.held and c not in newer]
        jobs = [*reported, *(k.job for k in held)]
        reports = columns(
            Reports,
            jobs,
            arrived=np.array([job.arrival for job in jobs]),
            trained=np.array([total([j.seconds for j in job.chain]) for job in jobs]),
            used=np.array([job.uses for job in jobs], dtype=np.int64),
        )
        reports.version[:] = [job.began for job in jobs]
        reports.steps[:] = [sum(j.steps for j in job.chain) for job in jobs]
        reports.local[len(reported) :] = True
        if trainer is not None:
            reports = replace(reports, **trainer.seen(jobs, policy.needs))
        self.reports = reports
        ledger = self.ledger(opened, self.working(reported), "policy merge", self.round)
        parameters = None if trainer is None else trainer.parameters
        merge = answer_checks.ask_merge(policy, ledger, reports, parameters)
        used = {j: float(c) for j, c in zip(jobs, merge.coefficient, strict=True) if c != 0}
        if trainer is not None and not trainer.move(jobs, used, merge):
            return True, {}
        return False, used

    def working(self, reported: list[ReferenceJob]) -> list[ReferenceJob]:
        """The jobs that have not reported, while their round is open."""
        return [job for job in self.open_jobs if job not in reported]

    def rate(self, policy: Policy) -> None:
        """Have a score that is not too old."""
        assert self.trainer is not None
        if self.score is None or self.version - self.score.version >= policy.score_every:
            found = self.trainer.score()
            accuracy = found.accuracy if np.isfinite(found.loss) else None
            self.score = ModelScore(found.loss, accuracy, self.version)

    def spent(self, job: ReferenceJob) -> float:
        """For how long its client has worked on a job; one that is absent counts as late."""
        return min(job.stop, self.now) - job.start

    def book_merge(self, outcome: Outcome, used: dict[ReferenceJob, float]) -> None:
        """Reset ages, and settle the fate of all that is in the update."""
        outcome.used = len(used)
        fresh = [job for job in used if not self.is_kept(job)]
        for job, coefficient in used.items():
            client = job.client
            since = self.now - self.settled[client]
            self.area[client] += since * (
                (self.now + self.settled[client]) / 2 - self.last_start[client]
            )
            self.settled[client] = self.now
            self.last_start[client] = job.start
            self.last_round[client] = self.round
            self.merged[client] += 1
            self.weight[client] += coefficient
            outcome.reused += job.uses > 0
            fate = Fate.FRESH if job.began == self.version else Fate.STALE
            outcome.fates[fate] += job in fresh
            kept = self.kept.get(client)
            if kept is not None and (job.local or job not in fresh):
                outcome.fates[fate] += kept.pending
                kept.pending, kept.charge, kept.spent = 0, 0.0, 0.0
                if job in fresh:  # what it went on from is in it
                    del self.kept[client]
            job.uses += 1
        self.drop(outcome, [job.client for job in fresh if not job.local])

    def is_kept(self, job: ReferenceJob) -> bool:
        """Whether a job's report was kept in an earlier round."""
        return job.client in self.kept and self.kept[job.client].job is job

    def keep(self, outcome: Outcome, job: ReferenceJob, code: int, used: bool) -> None:
        """Keep a client's report, its local model, or both."""
        before = self.kept.get(job.client)
        pending, charge, spent = (
            (0, 0.0, 0.0) if before is None else (before.pending, before.charge, before.spent)
        )
        if not used:
            pending += 1
            charge, spent = charge + (self.now - job.start), spent + self.spent(job)
        fate = Fate.OVER if outcome.succeeded else Fate.FAILED
        self.kept[job.client] = KeptJob(
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
            ages.append((area + rest) / self.now if self.now > 0 else 0.0)
        by_round = {f.name: np.array([getattr(o, f.name) for o in self.outcomes])
                    for f in fields(Outcome)}  # fmt: skip
        curve, model = None, None
        if self.trainer is not None:
            score = self.trainer.score()
            accuracy = np.nan if score.accuracy is None else score.accuracy
            curve = Curve(
                np.array([self.round]), np.array([self.now]), np.array([self.version]),
                np.array([by_round["work"].sum()]), np.array([score.loss]), np.array([accuracy]),
            )  # fmt: skip
            model = self.trainer.task.learner.save(self.trainer.models[-1])
        return History(
            display_name(self.controller), self.seed, by_round, np.array(ages),
            np.array(self.merged), np.array(self.weight),
            len(self.running) + sum(k.pending for k in self.kept.values()),
            curve, model,
        )  # fmt: skip
