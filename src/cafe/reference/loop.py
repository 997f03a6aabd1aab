"""The reference's loop: one client at a time, one event at a time."""

from __future__ import annotations

import heapq
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cafe.controllers import Choice, Controller, Fixed, as_controller, display_name
from cafe.federation import Federation
from cafe.fitting.observations import Observations
from cafe.randomness import Stream
from cafe.reference.job_draws import JobDraws
from cafe.reference.reference_books import ReferenceBooks
from cafe.reference.reference_jobs import ReferenceJob, as_columns, reported_jobs, total
from cafe.reference.trainer import Trainer
from cafe.rounds import answer_checks
from cafe.rounds.answers import COMMIT, HOLD, LOCAL, RUN, Verdict
from cafe.rounds.history import Curve, History
from cafe.rounds.jobs import Invitation, Jobs, Reports
from cafe.rounds.ledger import Ledger, LedgerColumns, ModelScore
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting
from cafe.task import Task

LAST_RESPONSES = 20_000  # how many response times a controller sees


class _Merged(NamedTuple):
    """The jobs in an update with their coefficients, and what ``merge`` was given.

    ``spoilt`` is True if there is no update because it would have put NaN or infinity in the model.
    """

    used: dict[ReferenceJob, float]
    reports: Reports | None
    spoilt: bool = False


class Reference:
    """A run with one object per job. :meth:`step` plays one round."""

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
        self.controller = as_controller(policy)
        self.clients, self.seed = n, seed
        examples = federation.examples if task is None else task.shards.counts
        self.examples = np.broadcast_to(examples, n).astype(np.int64)
        self.now, self.opened = 0.0, 0.0
        self.round, self.version, self.invitations, self.closes = 0, 0, 0, 0
        self.books = ReferenceBooks(n)
        self.running: list[ReferenceJob] = []
        self.state: Any = None
        self.memory: Any = None  # what the policy's merge left for later
        self.score: ModelScore | None = None
        self.responses: list[tuple[int, float, float]] = []
        self.trainer = None if task is None else Trainer(task, seed)
        self.bytes = 0 if self.trainer is None else 4 * self.trainer.parameters
        self.outcomes: list[Outcome] = []
        self.presence, self.away = None, np.zeros(n, dtype=bool)
        if federation.presence is not None:
            self.presence = federation.presence.begin(n, seed)
        self.draws = JobDraws(federation, task, seed, crash, self.presence)
        self.control: Any = None  # what the controller remembers
        self.policy = self.choose().policy

    def set_model(self, model: Any) -> None:
        """Replace the server's model by one from outside, as a new version."""
        self.version += 1
        if self.trainer is not None:
            self.trainer.set_model(model)

    def choose(self) -> Choice:
        """What the controller chooses for the next round."""
        if isinstance(self.controller, Fixed):
            return Choice(self.controller.policy)
        seen = None
        if self.responses:
            clients, times, awaited = zip(*self.responses[-LAST_RESPONSES:], strict=True)
            seen = Observations([*times], [*awaited], [f"{client}" for client in clients])
        answer = self.controller(self.ledger(self.running), seen)
        return answer if isinstance(answer, Choice) else Choice(answer)

    def ledger(self, working: list[ReferenceJob], decision: str = "", at: int = 0) -> Ledger:
        """What the server knows now, with the random numbers of a decision.

        Args:
            working: the jobs that have not reported.
            decision: the name of its stream of random numbers; empty for a controller.
            at: the index in the stream.
        """
        columns = LedgerColumns.new(self.examples)
        self.books.show(columns)
        for job in working:
            columns.busy[job.client] = True
        columns.away[:] = self.away  # as it was when the round opened
        ledger = Ledger(columns)
        if decision and "forecasts" in self.policy.needs:
            ledger.forecasts = self.forecast
        ledger.now, ledger.opened, ledger.invitations = self.now, self.opened, self.invitations
        ledger.round, ledger.version, ledger.state = self.round, self.version, self.state
        ledger.score, ledger.working, ledger.memory = self.score, len(working), self.memory
        ledger.control = self.control
        ledger.update_size = None if self.trainer is None else self.trainer.parameters
        if decision:
            ledger.seed_decision(Stream(self.seed, decision), at)
        return ledger

    def forecast(self, clients: Any, until: float) -> Any:
        """The probability that each client stays present until a time."""
        if self.presence is None:
            return np.ones(len(clients))
        return self.presence.forecast(clients, self.now, until)

    def step(self) -> Outcome:
        """Play one round."""
        outcome = self.open()
        jobs = [*self.running, *self.invite(outcome)]
        reported, verdict, unfinished = self.wait(jobs, outcome)
        if self.trainer is not None:
            for job in reported:
                self.trainer.train(job)
        merged = _Merged({}, None)
        if verdict is COMMIT:
            merged = self.merge(jobs, reported)
        outcome.closed, outcome.reports = self.now, len(reported)
        outcome.succeeded = verdict is COMMIT and not merged.spoilt
        outcome.invited = len(jobs) - len(self.running)
        shares = [job.work.upload for job in reported]
        uploaded = sum(share * shares.count(share) for share in sorted(set(shares)))
        outcome.bytes_up = float(uploaded) * self.bytes
        self.settle(outcome, jobs, reported, merged, unfinished)
        return outcome

    def open(self) -> Outcome:
        """Find out which clients are present and which policy applies, and open the round."""
        if self.presence is not None:
            self.away = self.presence.away(self.now)
        before, choice = self.policy, self.choose()
        policy, self.control = choice.policy, choice.state
        if policy.name != before.name and self.round:  # it knows nothing of another's notes
            self.state = self.memory = None
            if self.trainer is not None:
                self.trainer.clear_vectors()
        self.policy = policy
        if "scores" in policy.needs:
            self.update_score(policy)
        while self.presence is not None and sum(~self.away) < policy.opens_with:
            self.now = self.presence.next_change(self.now)
            self.away = self.presence.away(self.now)
        self.opened = self.now
        return Outcome(self.round, self.opened, self.now, False)

    def update_score(self, policy: Policy) -> None:
        """Evaluate the model if the last score is too old for the policy."""
        assert self.trainer is not None
        if self.score is None or self.version - self.score.version >= policy.score_every:
            found = self.trainer.score()
            accuracy = found.accuracy if np.isfinite(found.loss) else None
            self.score = ModelScore(found.loss, accuracy, self.version)

    def invite(self, outcome: Outcome) -> list[ReferenceJob]:
        """Ask the policy which clients to invite, and start their jobs."""
        ledger = self.ledger(self.running, "policy", self.round)
        answer = self.policy.invite(ledger, ledger.rng)
        first = answer_checks.check_invitation(self.policy, "invite", ledger, answer)
        return self.start(first, [], outcome)

    def start(
        self, invitation: Invitation, jobs: list[ReferenceJob], outcome: Outcome
    ) -> list[ReferenceJob]:
        """Start the jobs of an invitation.

        Args:
            invitation: which clients are invited, and for which work.
            jobs: the other jobs of the round, if it is already open.
            outcome: the outcome of the round.
        """
        policy, trainer = self.policy, self.trainer
        number, until = self.invitations, None
        self.invitations += 1
        if policy.deadline is not None and policy.late == "drop":
            until = self.opened + policy.deadline
        drawn = self.draws.draw(number, invitation, self.now, until)
        new = []
        for k, client in enumerate(invitation.clients.tolist()):
            local = invitation.local is not None and bool(invitation.local[k])
            local = local and client in self.books.kept and self.books.kept[client].local
            local = local and client not in {job.client for job in jobs}
            before = self.books.kept[client].job if local else None
            new.append(
                ReferenceJob(
                    client=client,
                    start=self.now,
                    version=self.version,
                    round=self.round,
                    local=local,
                    invitation=number,
                    note=0.0 if invitation.note is None else float(invitation.note[k]),
                    work=invitation.work,
                    before=before,
                    began=self.version if before is None else before.began,
                    offset=None if trainer is None else trainer.offset(client),
                    frozen=None if trainer is None else trainer.frozen,
                    **vars(drawn[k]),
                )
            )
        sent = [job for job in new if not job.absent]
        outcome.downloads += len(sent)
        outcome.bytes_down += len(sent) * invitation.work.download * self.bytes
        outcome.bytes_down += len([job for job in sent if job.offset is not None]) * self.bytes
        if trainer is not None and trainer.has_vectors and any(job.local for job in new):
            raise answer_checks.local_models_error(policy)
        return new

    def wait(
        self, jobs: list[ReferenceJob], outcome: Outcome
    ) -> tuple[list[ReferenceJob], Verdict, Fate]:
        """Collect reports, in order of time and then of client, for as long as the policy waits.

        Args:
            jobs: the open jobs. Jobs that are invited during the wait are added.
            outcome: the outcome of the round.

        Returns:
            The jobs that have reported, the verdict, and the fate of jobs that the close cuts off.
        """
        queue = [(job.arrival, job.client, k) for k, job in enumerate(jobs)]
        heapq.heapify(queue)
        reported: list[ReferenceJob] = []
        until, policy = np.inf, self.policy
        before = len(self.running)
        while True:
            working = [job for job in jobs if job not in reported]
            ledger = self.ledger(working, "policy close", self.closes)
            self.closes += 1
            seen = [job for job in jobs if job in reported]
            waiting = Waiting(
                len(reported), len(jobs) - before, len(working), partial(reported_jobs, seen)
            )
            answer = answer_checks.check_close(policy, policy.close(ledger, waiting))
            if isinstance(answer, Verdict):
                return reported, answer, Fate.CANCELLED if self.now < until else Fate.LATE
            if isinstance(answer, Invitation):
                more = answer_checks.check_more(policy, ledger, answer)
                for job in self.start(more, jobs, outcome):
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

    def merge(self, jobs: list[ReferenceJob], reported: list[ReferenceJob]) -> _Merged:
        """Ask the policy for coefficients, and move the model."""
        policy, trainer = self.policy, self.trainer
        newer = {job.client for job in reported}
        kept = sorted(self.books.kept.items())
        held = [k.job for client, k in kept if k.held and client not in newer]
        offered = [*(job for job in jobs if job in reported), *held]
        reports = as_columns(
            Reports,
            offered,
            arrived=np.array([job.arrival for job in offered]),
            trained=np.array([total([j.seconds for j in job.chain]) for job in offered]),
            used=np.array([job.uses for job in offered], dtype=np.int64),
        )
        reports.version[:] = [job.began for job in offered]
        reports.steps[:] = [sum(j.steps for j in job.chain) for job in offered]
        reports.local[len(reported) :] = True
        if trainer is not None:
            reports = replace(reports, **trainer.describe(offered, policy.needs))
        working = [job for job in jobs if job not in reported]
        ledger = self.ledger(working, "policy merge", self.round)
        parameters = None if trainer is None else trainer.parameters
        merge = answer_checks.ask_merge(policy, ledger, reports, parameters)
        used = {j: float(c) for j, c in zip(offered, merge.coefficient, strict=True) if c != 0}
        if merge.memory is not None and not np.isfinite(merge.memory).all():
            return _Merged({}, None, spoilt=True)
        if trainer is not None and not trainer.move(offered, used, merge, policy.server):
            return _Merged({}, None, spoilt=True)
        if merge.memory_rows is not None:
            self.memory = np.array(self.memory)
            self.memory[merge.memory_rows] = merge.memory
        elif merge.memory is not None:
            self.memory = merge.memory
        return _Merged(used, reports)

    def settle(
        self,
        outcome: Outcome,
        jobs: list[ReferenceJob],
        reported: list[ReferenceJob],
        merged: _Merged,
        unfinished: Fate,
    ) -> None:
        """Ask the policy what to keep after the round, give jobs their fate, and book the round."""
        policy, used, spoilt = self.policy, merged.used, merged.spoilt
        closed = Closed(
            outcome.succeeded,
            np.array([job in reported for job in jobs], dtype=bool),
            merged.reports,
            lambda: (
                as_columns(Jobs, jobs),
                np.array([job in used for job in jobs], dtype=bool),
                np.array([job.arrival if job in reported else np.nan for job in jobs]),
            ),
        )
        working = [job for job in jobs if job not in reported]
        ledger = self.ledger(working, "policy carry", self.round)
        answer = policy.carry(ledger, closed)
        carried = answer_checks.check_carry(policy, answer, len(jobs), self.clients)
        codes = np.broadcast_to(np.asarray(carried.jobs, dtype=int), len(jobs))
        stays = np.broadcast_to(np.asarray(carried.kept) & (not spoilt), self.clients)

        running, keeping, wasted, ended, absent = [], [], [], [], []
        fates: dict[ReferenceJob, Fate] = {}
        last = {job.client: job for job in jobs if job in reported}  # each client's last report
        for job, code in zip(jobs, codes.tolist(), strict=True):
            lost = job not in reported and (job.absent or (job.crashes and job.stop <= self.now))
            runs = job not in reported and not lost and code & RUN
            if not lost and not runs:
                self.note_response(job)
            if runs:
                running.append(job)
                continue
            ended.append(job)
            kept = job in reported and code & (HOLD | LOCAL) and not spoilt
            if kept and last[job.client] is job:
                keeping.append((job, code))
            elif job not in used:
                wasted.append(job)
                if job in reported:
                    fates[job] = Fate.OVER if outcome.succeeded else Fate.FAILED
                elif lost:
                    fates[job] = Fate.ABSENT if job.absent else Fate.CRASHED
                    absent += [job] if job.absent else []
                elif job.arrival <= self.now:  # it came with the target's last report
                    fates[job] = Fate.OVER
                else:
                    fates[job] = unfinished
                outcome.fates[fates[job]] += 1
        outcome.work = float(np.sum([job.spent(self.now) for job in ended]))
        outcome.waste = float(np.sum([self.now - job.start for job in wasted]))
        outcome.processing_waste = float(np.sum([job.spent(self.now) for job in wasted]))
        outcome.absent_waste = float(np.sum([self.now - job.start for job in absent]))

        fates |= self.books.merge(outcome, used, self.version)
        for fate in Fate:
            spent = [job.spent(self.now) for job in ended if fates.get(job) == fate]
            outcome.work_by_fate[fate] += float(np.sum(spent))
        newly = {job.client for job, _ in keeping}
        continuing = {job.client for job in running if job.local}
        dropped = [k for k in sorted(self.books.kept) if k not in newly | continuing]
        self.books.drop(outcome, [client for client in dropped if not stays[client]])
        self.books.drop(outcome, [job.client for job, _ in keeping if not job.local])
        for job, code in keeping:
            self.books.keep(outcome, job, code, job in used)
        self.running = running
        self.round += 1
        self.version += int(outcome.succeeded)
        outcome.version = self.version
        outcome.age = self.now - float(np.mean(self.books.last_start))
        self.outcomes.append(outcome)
        if policy.observe is not None:
            ledger = self.ledger(running, "policy observe", self.round - 1)
            answer = policy.observe(ledger, outcome, closed)
            self.state = answer_checks.check_state(policy, answer)

    def note_response(self, job: ReferenceJob) -> None:
        """Add a job's response time to those that the controller sees."""
        if self.now > job.start:  # a round of zero length carries no information
            took = job.arrival - job.start if job.arrival <= self.now else np.nan
            self.responses.append((job.client, took, self.now - job.start))

    def history(self) -> History:
        """What has happened so far."""
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
        books = self.books
        return History(
            display_name(self.controller), self.seed, by_round,
            np.array(books.mean_ages(self.now)), np.array(books.merged), np.array(books.weight),
            len(self.running) + sum(kept.pending for kept in books.kept.values()),
            curve, model,
        )  # fmt: skip
