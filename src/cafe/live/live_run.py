"""The loop on real clients: the engine's books, and a wire where the engine draws latencies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cafe.control import Controller, ask_controller, display_name
from cafe.engine.arrivals import end_of_wait
from cafe.engine.books import Books
from cafe.engine.closing_round import ClosingRound
from cafe.engine.fates import JobFates, UsedReports
from cafe.engine.policy_calls import PolicyCalls
from cafe.engine.response_times import MAX_RESPONSES
from cafe.engine.run_checks import check_secure
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Indices
from cafe.fitting.observations import Observations
from cafe.learn.base import Score
from cafe.learn.server_optimisers import ServerOptimiser
from cafe.live.aggregation import Combine
from cafe.live.dispatch import Dispatcher
from cafe.live.global_model import GlobalModel
from cafe.live.job_records import JobRecord
from cafe.live.model_layout import Arrays, Vector
from cafe.live.open_round import OpenRound, PlayedRound, Response
from cafe.live.pending import Pending
from cafe.live.roster import ClientRegistry
from cafe.live.validation import Admitted, ReportLimits, ReportValidator
from cafe.live.wire import Order, Wire
from cafe.randomness import check_seed
from cafe.rounds import answer_checks
from cafe.rounds.answers import COMMIT, Verdict, Wait
from cafe.rounds.client_vectors import ClientVectors, JobVectors
from cafe.rounds.history import Column, History, RoundColumns
from cafe.rounds.jobs import Invitation, Reports, Running, Status, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import OPEN, Fate, Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting

POLL = 0.15  # seconds between two looks at what has come
SLOW = 2.0  # seconds that a look may take: one at the deadline finds what came before it


class LiveRun:
    """A run on real clients: :meth:`step` plays one round.

    Args:
        wire: the way to the clients.
        controller: which policy holds in each round.
        model: the arrays to begin with.
        seed: of all that the server draws.
        report_limits: limits on what clients may report.
        combine: how updates are put together.
        optimiser: what the server does with the update; None adds it.
        notice: called whenever something is to be seen, such as a report.
        secure_aggregation: refuse policies that need to see single updates or losses.
    """

    def __init__(
        self,
        wire: Wire,
        controller: Controller,
        model: Arrays,
        *,
        seed: int = 0,
        report_limits: ReportLimits | None = None,
        combine: Combine | None = None,
        optimiser: ServerOptimiser | None = None,
        notice: Callable[[], None] = lambda: None,
        secure_aggregation: bool = False,
    ) -> None:
        self.wire, self.controller, self.seed = wire, controller, check_seed(seed)
        self.notice, self.secure_aggregation = notice, secure_aggregation
        if secure_aggregation and combine is not None:
            raise InputError(
                f"The way to merge {display_name(combine)} looks at single updates, and secure "
                "aggregation shows the server only sums. Leave out one of the two."
            )
        self.global_model = GlobalModel(model, combine, optimiser)
        self.vectors = ClientVectors()
        self.clients = ClientRegistry()
        self.dispatcher = Dispatcher(
            wire,
            ReportValidator(self.global_model.layout, report_limits or ReportLimits()),
            self.clients,
        )
        self.books = Books.new(np.empty(0, dtype=np.int64))
        self.calls = PolicyCalls(self.books.ledger, self.seed, secure_aggregation)
        self.running, self.records = Running.empty(), list[JobRecord]()
        self.pending = Pending()
        self.held: dict[int, Admitted] = {}
        self.outcomes: list[Outcome] = []
        self.scores: list[tuple[int, Score]] = []
        self.responses: deque[Response] = deque(maxlen=MAX_RESPONSES)
        self.failures = 0
        self.open: OpenRound | None = None
        self._columns = RoundColumns()
        self._bytes = self.global_model.versions[0].nbytes
        self._zero = wire.clock()
        self._asked: tuple[int, bytes] | None = None
        self.policy = self.choose()

    @property
    def title(self) -> str:
        """The policy, as it is written."""
        return display_name(self.controller)

    @property
    def ledger(self) -> Ledger:
        """What the server knows."""
        return self.books.ledger

    @property
    def model(self) -> Vector:
        """The global model as one vector."""
        return self.global_model.versions[self.ledger.version]

    @property
    def arrays(self) -> Arrays:
        """The global model as it is sent."""
        return self.global_model.arrays(self.ledger.version)

    def now(self) -> float:
        """Seconds since the run began; it stands still while no server runs."""
        return self.wire.clock() - self._zero

    def set_clock(self, now: float) -> None:
        """Go on from a time at which an earlier server stopped."""
        self._zero = self.wire.clock() - now

    def meet(self) -> tuple[list[str], list[str]]:
        """See who is there: who has joined, and who has gone since the last look."""
        present = self.wire.present()
        self.ledger.now = self.now()
        return self.clients.meet(present, self.books)

    def choose(self) -> Policy:
        """The policy of the next round; the controller is asked again if clients came or went."""
        ledger = self.ledger
        asked = (ledger.round, ledger.away.tobytes())
        if asked != self._asked:
            self.policy = ask_controller(self.controller, ledger, self.seen())
            self.policy.check_lost()  # real clients get lost, and a round must still end
            check_secure(self.policy, self.secure_aggregation)
            if "forecasts" in self.policy.needs:
                raise InputError(
                    f"The policy {self.policy.name} needs forecasts of presence, which exist "
                    "only in simulations. Simulate it, or choose another policy."
                )
            self._asked = asked
        return self.policy

    def step(self) -> PlayedRound:
        """Play one round, from the broadcast to the close."""
        ledger, policy = self.ledger, self.choose()
        ledger.now = ledger.opened = self.now()  # what the controller took is not the round's
        outcome = Outcome(ledger.round, ledger.opened, ledger.now, False)
        open_ = self.open = OpenRound(self.running, [*self.records])
        self._start(open_, self.calls.invite(policy), outcome)
        repeats, verdict, early = self._wait(open_, outcome)
        jobs, reported = open_.jobs, open_.reported
        used, reports, spoilt = UsedReports.nothing(), None, False
        if verdict is COMMIT:
            merged = self._merge(jobs, np.flatnonzero(reported))
            spoilt = merged is None
            used, reports = merged or (used, None)
        outcome.closed, outcome.succeeded = ledger.now, verdict is COMMIT and not spoilt
        outcome.invited = open_.invited
        outcome.bytes_up = self._weight(open_) * self._bytes
        closed = Closed.of(outcome.succeeded, jobs, reported, used.jobs, reports)
        carried = self.calls.carry(policy, closed, len(jobs), spoilt)
        unfinished = Fate.CANCELLED if early else Fate.LATE
        fates = self.books.close(
            ClosingRound(outcome, jobs, reported, used, carried, unfinished, repeats)
        )
        self.running = fates.running
        records = self.pending.settle(outcome, open_, used, fates)
        responses = self._responses(open_, fates)
        self._remember(open_, fates)
        self.outcomes.append(outcome)
        self.responses += responses
        self.calls.observe(policy, outcome, closed)
        self.failures = 0 if outcome.succeeded else self.failures + 1
        self.open = None
        return PlayedRound(outcome, records, responses, open_.lost_carries, spoilt)

    def _start(self, open_: OpenRound, invitation: Invitation, outcome: Outcome) -> None:
        """Send the orders of an invitation, and add its jobs to the round."""
        ledger, clients, number = self.ledger, invitation.clients, self.ledger.invitations
        n = len(clients)
        local = np.zeros(n, dtype=bool)
        if invitation.local is not None:
            local = invitation.local & ledger.local[clients]
        if local.any() and "local models" not in self.policy.needs:
            raise InputError(
                f"The policy {self.policy.name} lets clients go on from local models, and they "
                'keep none: name "local models" among what it needs.'
            )
        works, answered = _works(invitation), open_.answered()
        orders = [
            self._order(k, bool(own), work, answered.get(k, ()))
            for k, own, work in zip(clients.tolist(), local.tolist(), works, strict=True)
        ]
        used = JobVectors()
        if self.vectors.used:
            if local.any():
                raise answer_checks.local_models_error(self.policy)
            used = self.vectors.begin(number, clients)
            orders = self._with_vectors(orders, used)
        records = self.dispatcher.send(orders, self.arrays, ledger.now)
        lost = np.array([bool(record.reason) for record in records], dtype=bool)
        steps = [work.steps if work.epochs is None is work.seconds else 0 for work in works]
        new = Running(
            client=clients,
            start=np.full(n, ledger.now),
            version=np.full(n, ledger.version, dtype=np.int64),
            round=np.full(n, ledger.round, dtype=np.int64),
            local=local,
            invitation=np.full(n, number, dtype=np.int64),
            steps=np.array(steps, dtype=np.int64),
            note=np.zeros(n) if invitation.note is None else invitation.note,
            arrival=np.full(n, np.inf),
            stop=np.full(n, np.inf),
            status=np.where(lost, Status.ABSENT, Status.EXPECTED).astype(np.int8),
            trained=np.zeros(n),
        )
        open_.add(new, records)
        ledger.invitations += 1
        ledger.mark(clients, None, True)
        sent = n - int(np.count_nonzero(lost))
        outcome.downloads += sent
        outcome.bytes_down += sent * invitation.work.download * self._bytes
        outcome.bytes_down += used.count(clients[~lost]) * self._bytes

    def _with_vectors(self, orders: list[Order], used: JobVectors) -> list[Order]:
        """The orders, with the vectors and the frozen parameters of their clients."""
        parts = self.global_model.layout.parts
        frozen = None if used.frozen is None else parts(used.frozen)
        common = None if used.common is None else parts(used.common)  # one object: it is sent once
        found = []
        for order in orders:
            offset = common
            if order.number in used.own:
                vector = used.offset(order.number)
                offset = None if vector is None else parts(vector)
            found.append(replace(order, offset=offset, frozen=frozen))
        return found

    def _order(self, k: int, local: bool, work: Work, answered: tuple[int, ...]) -> Order:
        kept, ledger, policy = self.books.kept, self.ledger, self.policy
        seconds = None
        if policy.deadline is not None and policy.late == "drop":
            seconds = ledger.opened + policy.deadline - ledger.now
        carry = "local models" in policy.needs
        keeps = answered if carry else ()
        if carry and ledger.local[k]:
            keeps = (int(kept.invitation[k]), *keeps)
        return Order(
            client=self.clients.names[k],
            number=k,
            round=ledger.round,
            version=ledger.version,
            seed=self.seed,
            work=work,
            seconds=seconds,
            carry=carry,
            after=int(kept.invitation[k]) if local else None,
            began=int(kept.version[k]) if local else None,
            invitation=ledger.invitations,
            reserve=self.dispatcher.reserve if work.partial else 0.0,
            keeps=keeps,
        )

    def _weight(self, open_: OpenRound) -> float:
        """The total size of the round's reports, in models."""
        rows = np.flatnonzero(open_.reported).tolist()
        return sum(self.dispatcher.upload(open_.records[row]) for row in rows)

    def _wait(self, open_: OpenRound, outcome: Outcome) -> tuple[bool, Verdict, bool]:
        """Wait as the policy asks.

        Returns:
            Whether clients were invited while the round was open, the verdict, and whether the
            round closed early.
        """
        ledger, policy, repeats = self.ledger, self.policy, False
        while True:
            jobs, reported = open_.jobs, open_.reported
            count = int(np.count_nonzero(reported))
            over = int(np.count_nonzero(~reported & (jobs.arrival <= ledger.now)))
            coming = int(np.count_nonzero(open_.alive)) + over
            ledger.working = len(jobs) - count
            waiting = Waiting(count, open_.invited, coming, open_.look)
            answer = self.calls.close(policy, waiting, lambda: open_.jobs.client)
            if isinstance(answer, Verdict):
                return repeats, answer, ledger.now < open_.until
            if isinstance(answer, Invitation):
                self._start(open_, answer, outcome)
                repeats = True
                continue
            passed = answer.reports is not None and answer.reports <= count
            if passed or not answer.until > ledger.now:
                raise answer_checks.past_wait_error(policy, ledger.now, answer)
            if np.isinf(answer.until) and (answer.reports or count + coming + 1) > count + coming:
                raise InfeasibleError(
                    f"Round {ledger.round} waits for more reports than can come, without a "
                    "deadline: it would last for ever. Give the policy a deadline."
                )
            open_.until = answer.until
            self.notice()
            if not self._listen(open_, answer):
                self.calls.repeat_close()
            _, now_reported = end_of_wait(jobs, answer)
            ledger.mark(jobs.client, now_reported & ~reported, False)
            open_.reported = now_reported

    def _listen(self, open_: OpenRound, wait: Wait) -> bool:
        """Poll for replies until the wait is over, or until a client is known to be lost.

        Returns:
            Whether the wait is over.
        """
        jobs, ledger = open_.jobs, self.ledger
        before = open_.lost
        while True:
            moment = self.now()
            for reply in self.dispatcher.replies(open_):
                at = moment if reply.at is None else reply.at - self._zero
                # What the last look finds had come by then; not if that look was held up.
                at = at if at > wait.until + SLOW else min(at, wait.until)
                self.dispatcher.take(
                    open_, reply, at, wait.until, self.model, self.books, self.policy.needs
                )
                self.notice()
            ledger.now = max(self.now(), moment)
            there = np.isfinite(jobs.arrival) & (jobs.arrival <= wait.until)
            arrived = int(np.count_nonzero(there))
            enough = wait.reports is not None and arrived >= wait.reports
            if enough or moment >= wait.until:
                return True
            if open_.lost > before:
                return False
            self.wire.sleep(min(POLL, max(wait.until - self.now(), 0.0)))

    def _merge(self, jobs: Running, index: Indices) -> tuple[UsedReports, Reports] | None:
        """Ask the policy for coefficients, and move the model; None if that would spoil it."""
        ledger, policy = self.ledger, self.policy
        reports, held = self.books.offer(jobs, index)
        keys = zip(jobs.client[index].tolist(), jobs.invitation[index].tolist(), strict=True)
        came = [self.dispatcher.arrived[key] for key in keys] + [
            self.held[k] for k in held.tolist()
        ]
        updates, found = [report.update for report in came], dict[str, Any]()
        if "updates" in policy.needs:
            rows = np.array(updates, dtype=np.float32)
            found["updates"] = rows.reshape(-1, self.global_model.layout.size)
        if "losses" in policy.needs:
            found["losses"] = np.array([report.loss for report in came])
        if "rms losses" in policy.needs:
            found["rms_losses"] = np.array([report.rms_loss for report in came])
        if "labels" in policy.needs:
            classes = self.dispatcher.validator.classes or 0
            counts = np.array([report.labels for report in came], dtype=np.int64)
            found["labels"] = counts.reshape(len(came), classes)
        size, vectors = self.global_model.layout.size, self.vectors
        if "offsets" in policy.needs:
            found["offsets"] = vectors.offsets(reports.client, reports.invitation, size)
            found["common"] = vectors.common_or_zeros(size)
        reports = replace(reports, **found)
        merge = self.calls.merge(policy, reports, size)
        if not self.global_model.move(ledger.version, updates, reports.version, merge):
            return None
        vectors.adopt(merge, reports.client)
        return UsedReports.by(merge, index, held), reports

    def _responses(self, open_: OpenRound, fates: JobFates) -> list[Response]:
        """The response times of a round; a job that runs on is noted when it ends."""
        found = []
        for row, record in enumerate(open_.records):
            runs = fates.by_job[row] == OPEN and not open_.reported[row]
            if runs or fates.by_job[row] in (Fate.CRASHED, Fate.REFUSED, Fate.ABSENT):
                continue
            waited_for = min(open_.until, self.ledger.now) - record.start
            if not waited_for > 0:  # a round of zero length carries no information
                continue
            took = None if record.arrived is None else _seconds(record.arrived - record.start)
            found.append(Response(record.name, took, _seconds(waited_for)))
        return found

    def _remember(self, open_: OpenRound, fates: JobFates) -> None:
        """Keep what later rounds may need, and forget the rest."""
        books = self.books
        for row in fates.kept.tolist():
            record = open_.records[row]
            if books.kept.held[record.client]:
                self.held[record.client] = self.dispatcher.arrived[record.client, record.invitation]
        self.held = {k: report for k, report in self.held.items() if books.kept.held[k]}
        self.pending.forget(books.kept.held)
        runs = zip(self.running.client.tolist(), self.running.invitation.tolist(), strict=True)
        going_on = [*runs]
        rows = [open_.row(key) for key in going_on]
        self.records = [open_.records[row] for row in rows if row is not None]
        self.dispatcher.tidy(set(going_on))
        keeps = books.kept.held | self.ledger.local
        needed = {self.ledger.version, *self.running.version.tolist()}
        self.global_model.forget(needed | set(books.kept.version[keeps].tolist()))
        self.vectors.forget(
            [*self.running.invitation.tolist(), *books.kept.invitation[keeps].tolist()]
        )

    def seen(self) -> Observations | None:
        """The last response times."""
        if not self.responses:
            return None
        return Observations(
            [np.nan if r.seconds is None else r.seconds for r in self.responses],
            [np.inf if r.deadline is None else r.deadline for r in self.responses],
            [r.name for r in self.responses],
        )

    @property
    def by_round(self) -> dict[str, Column]:
        """The rounds so far, as an array per field."""
        return self._columns.of(self.outcomes)

    def history(self) -> History:
        """What has happened so far."""
        model = self.model.astype(np.float32)
        return self.books.history(
            self.title, self.seed, self.by_round, self.running, self.scores, model
        )


def _works(invitation: Invitation) -> list[Work]:
    """What each of the invited clients is asked to do."""
    work, n = invitation.work, len(invitation.clients)
    if invitation.amount is None:
        return [work] * n
    unit = "seconds" if work.seconds is not None else "epochs" if work.epochs else "steps"
    return [replace(work, **{unit: amount}) for amount in invitation.amount.tolist()]


def _seconds(passed: float) -> float:
    """To the microsecond, as in the file; never none at all, which no latency explains."""
    return max(round(passed, 6), 1e-6)
