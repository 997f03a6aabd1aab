"""Rounds on real clients: with the engine's books, and a wire instead of drawn latencies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cafe.controllers import Controller, ask_controller, display_name
from cafe.engine.arrivals import end_of_wait
from cafe.engine.books import Books
from cafe.engine.closing_round import ClosingRound
from cafe.engine.fates import JobFates, UsedReports
from cafe.engine.policy_calls import PolicyCalls
from cafe.engine.response_times import MAX_RESPONSES
from cafe.engine.run_checks import check_same_optimiser, check_secure, server_optimiser
from cafe.engine.training import finite
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Indices
from cafe.fitting.observations import Observations
from cafe.latency.base import Floats
from cafe.learn.base import Score
from cafe.live.aggregation import GlobalModel
from cafe.live.clipping import UpdateClipper
from cafe.live.dispatch import ClientRegistry, Dispatcher, attach_vectors, new_jobs
from cafe.live.job_records import JobRecord, KeptRecords, OpenRound, PlayedRound, Response
from cafe.live.model_layout import Arrays, Vector
from cafe.live.stay_estimate import StayEstimate
from cafe.live.validation import CLIP, ReportLimits, ReportValidator
from cafe.live.wire import Report, Wire
from cafe.randomness import check_seed
from cafe.rounds import answer_checks
from cafe.rounds.answers import COMMIT, Verdict, Wait
from cafe.rounds.client_vectors import ClientVectors, JobVectors
from cafe.rounds.history import Column, History, RoundColumns
from cafe.rounds.jobs import Invitation, Mask, Reports, Running, Status
from cafe.rounds.ledger import Ledger, ModelScore
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting

# From clients, now, and a later time to the probability that each client stays present until then.
Forecast = Callable[[Indices, float, float], Floats]

POLL = 0.15  # seconds between two polls for replies
TICK = 1.0  # seconds between two calls of ``on_time`` in an open round
SLOW = 2.0  # seconds that a poll at the deadline may take; its replies count as in time


class LiveRun:
    """A run on real clients: :meth:`step` plays one round.

    Args:
        wire: the connection to the clients.
        controller: which policy is used in each round.
        model: the global model, with its initial arrays.
        seed: the seed of all random numbers of the server.
        report_limits: limits on what clients may report.
        secure_aggregation: reject policies that need to see single updates or losses.
        forecast: forecasts of presence, for policies that need them; None: estimated from which
            clients were present when the server looked.

    Attributes:
        on_change: called whenever something has changed that an observer may see, such as a new
            report, and about once a second in an open round.
        on_send: called with the records of jobs whose orders are about to be sent, and with the
            bytes of these orders.
        on_time: called with the time of the run's clock, about once a second in an open round.
    """

    def __init__(
        self,
        wire: Wire,
        controller: Controller,
        model: GlobalModel,
        *,
        seed: int = 0,
        report_limits: ReportLimits | None = None,
        secure_aggregation: bool = False,
        forecast: Forecast | None = None,
    ) -> None:
        self.wire, self.controller, self.seed = wire, controller, check_seed(seed)
        self.secure_aggregation = secure_aggregation
        if secure_aggregation and model.combine is not None:
            raise InputError(
                f"The aggregation rule {display_name(model.combine)} needs single updates, but "
                "secure aggregation shows the server only sums. Leave out one of the two."
            )
        self.global_model = model
        self.vectors = ClientVectors()
        self.books = Books.new(np.empty(0, dtype=np.int64))
        self.books.ledger.update_size = None if secure_aggregation else model.layout.size
        self.calls = PolicyCalls(self.books.ledger, self.seed, secure_aggregation)
        self.clients = ClientRegistry()
        self.stay_estimate, self._forecast = StayEstimate(), forecast
        limits = report_limits or ReportLimits(clip=None if secure_aggregation else CLIP)
        if secure_aggregation and limits.clip is not None:
            raise InputError(
                "Clipping needs single updates, but secure aggregation shows the server only sums. "
                "Leave out report_limits, or give ReportLimits(clip=None, ...)."
            )
        self.validator = ReportValidator(model.layout, limits)
        self.clipper = UpdateClipper(limits.clip)
        self.dispatcher = Dispatcher(wire, self.validator, self.clients, self.books, self.seed)
        self.running, self.records = Running.empty(), list[JobRecord]()
        self.kept_records = KeptRecords()
        self.held: dict[int, Report] = {}  # the accepted reports that the policy holds, by client
        self.outcomes: list[Outcome] = []
        self.scores: list[tuple[int, Score]] = []
        self.responses: deque[Response] = deque(maxlen=MAX_RESPONSES)
        self.failures = self.restarts = 0
        self.open: OpenRound | None = None
        self.on_change: Callable[[], None] = lambda: None
        self.on_send: Callable[[list[JobRecord], float], None] = lambda records, size: None
        self.on_time: Callable[[float], None] = lambda now: None
        self._ticked = 0.0
        self._columns = RoundColumns()
        self._bytes = model.versions[0].nbytes
        self._zero = wire.clock()
        self._chosen_for: tuple[int, bytes] | None = None
        self._optimised: Policy | None = None  # the policy that set the server optimiser
        # Why the controller changed the policy, with the numbers of the rounds.
        self.reasons: list[tuple[int, str]] = []
        self.policy = self.choose_policy()

    @property
    def title(self) -> str:
        """The policy or controller as text."""
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

    @property
    def by_round(self) -> dict[str, Column]:
        """The rounds so far, as an array per field."""
        return self._columns.of(self.outcomes)

    def now(self) -> float:
        """Seconds since the run began, without the time in which no server was running."""
        return self.wire.clock() - self._zero

    def set_clock(self, now: float) -> None:
        """Continue from the time at which an earlier server stopped."""
        self._zero = self.wire.clock() - now

    def refresh_clients(self) -> tuple[list[str], list[str]]:
        """Check which clients are present.

        Returns:
            The names of the clients that have joined, and of those that have left, since the last
            call.
        """
        present = self.wire.present()
        self.ledger.now = self.now()
        changed = self.clients.update(present, self.books)
        self.stay_estimate.look(self.ledger.now, ~self.ledger.away)
        return changed

    def choose_policy(self) -> Policy:
        """The policy of the next round; the controller is called again if clients join or leave."""
        ledger = self.ledger
        chosen_for = (ledger.round, ledger.away.tobytes())
        if chosen_for != self._chosen_for:
            ledger.forecasts = None  # only policies that declare it see forecasts
            self._choice = ask_controller(self.controller, ledger, self.observations())
            self.policy = self._choice.policy
            self.policy.check_lost()  # real clients get lost, and a round must still end
            check_secure(self.policy, self.secure_aggregation)
            self._set_optimiser()
            if "forecasts" in self.policy.needs:
                ledger.forecasts = self._stays
            self._chosen_for = chosen_for
        return self.policy

    def _stays(self, clients: Indices, until: float) -> Floats:
        """The probability that each client stays present until a time; 0 for clients away."""
        ledger = self.ledger
        if self._forecast is not None:
            return self._forecast(clients, ledger.now, until)
        stays = self.stay_estimate.forecast(clients, ledger.now, until)
        return np.where(ledger.away[clients], 0.0, stays)

    def _set_optimiser(self) -> None:
        """Use the policy's server optimiser, if it has one; it cannot change in a run."""
        model = self.global_model
        if self._optimised is None:
            model.optimiser = server_optimiser(self.policy, model.optimiser)
        else:
            check_same_optimiser(self.policy, self._optimised)
        self._optimised = self.policy

    def step(self) -> PlayedRound:
        """Play one round, from the broadcast to the close."""
        open_ = self._open()
        self._invite(open_)
        verdict = self._wait(open_)
        self._clip(open_)
        merged = self._merge(open_) if verdict is COMMIT else None
        return self._settle(open_, merged, spoilt=verdict is COMMIT and merged is None)

    def _open(self) -> OpenRound:
        """Choose the policy, and open a round with the jobs of earlier rounds that still run."""
        ledger = self.ledger
        if ledger.hand_over(self.choose_policy().name):
            self.vectors.clear()
        ledger.control = self._choice.state
        if self._choice.reason:
            self.reasons.append((ledger.round, self._choice.reason))
        ledger.now = ledger.opened = self.now()  # the controller may have taken time
        outcome = Outcome(ledger.round, ledger.opened, ledger.now, False)
        self.open = OpenRound(outcome, self.running, [*self.records])
        return self.open

    def _invite(self, open_: OpenRound) -> None:
        """Ask the policy which clients to invite, and start their jobs."""
        self._start(open_, self.calls.invite(self.policy))

    def _start(self, open_: OpenRound, invitation: Invitation) -> None:
        """Send the orders of an invitation, and add its jobs to the round."""
        ledger, clients, outcome = self.ledger, invitation.clients, open_.outcome
        local = self._local(invitation)
        orders = self.dispatcher.make_orders(self.policy, invitation, local, open_)
        vectors = JobVectors()
        if self.vectors.used:
            if local.any():
                raise answer_checks.local_models_error(self.policy)
            vectors = self.vectors.begin(ledger.invitations, clients)
            orders = attach_vectors(orders, vectors, self.global_model.layout)
        records = self.dispatcher.records(orders)
        if records:
            self.on_send(records, self._size(invitation, clients, vectors))
        records = self.dispatcher.send(orders, records, self.arrays)
        jobs = new_jobs(ledger, invitation, orders, records)
        open_.add(jobs, records)
        ledger.invitations += 1
        ledger.mark(clients, None, True)
        reached = clients[jobs.status == Status.EXPECTED]
        outcome.downloads += len(reached)
        outcome.bytes_down += self._size(invitation, reached, vectors)

    def _size(self, invitation: Invitation, clients: Indices, vectors: JobVectors) -> float:
        """The bytes of the orders of some of the invited clients."""
        models = len(clients) * invitation.work.download + vectors.count(clients)
        return models * self._bytes

    def _local(self, invitation: Invitation) -> Mask:
        """Which of the invited clients continue from their local models."""
        if invitation.local is None:
            return np.zeros(len(invitation.clients), dtype=bool)
        local: Mask = invitation.local & self.ledger.local[invitation.clients]
        if local.any() and "local models" not in self.policy.needs:
            raise InputError(
                f"The policy {self.policy.name} lets clients continue from local models, but they "
                'keep none. Add "local models" to its needs.'
            )
        return local

    def _wait(self, open_: OpenRound) -> Verdict:
        """Wait as the policy asks, until it closes the round."""
        ledger, policy = self.ledger, self.policy
        while True:
            jobs, reported = open_.jobs, open_.reported
            count = int(np.count_nonzero(reported))
            uncounted = int(np.count_nonzero(open_.arrived_by(ledger.now) & ~reported))
            coming = int(np.count_nonzero(open_.awaited)) + uncounted
            ledger.working = len(jobs) - count
            waiting = Waiting(count, open_.invited, coming, open_.look)
            answer = self.calls.close(policy, waiting, lambda: open_.jobs.client)
            if isinstance(answer, Verdict):
                return answer
            if isinstance(answer, Invitation):
                self._start(open_, answer)
                continue
            passed = answer.reports is not None and answer.reports <= count
            if passed or not answer.until > ledger.now:
                raise answer_checks.past_wait_error(policy, ledger.now, answer)
            if np.isinf(answer.until) and (answer.reports or count + coming + 1) > count + coming:
                raise InfeasibleError(
                    f"Round {ledger.round} waits for more reports than can arrive, without a "
                    "deadline: it would never end. Give the policy a deadline."
                )
            open_.until = answer.until
            self.on_change()
            if not self._receive(open_, answer):
                self.calls.repeat_close()
            _, now_reported = end_of_wait(jobs, answer)
            ledger.mark(jobs.client, now_reported & ~reported, False)
            open_.reported = now_reported

    def _receive(self, open_: OpenRound, wait: Wait) -> bool:
        """Poll for replies until the wait is over, or until a client is known to be lost.

        Returns:
            Whether the wait is over.
        """
        lost_before = open_.lost
        while True:
            moment = self.now()
            if moment - self._ticked >= TICK:
                self._ticked = moment
                self.on_time(moment)
                self.on_change()  # an observer may have skipped the last change
            for reply in self.dispatcher.replies(open_):
                at = moment if reply.at is None else reply.at - self._zero
                # The last poll returns what arrived before the deadline, unless it was delayed.
                at = at if at > wait.until + SLOW else min(at, wait.until)
                self.dispatcher.note_reply(open_, reply, at, self.policy.needs)
                self.on_change()
            self.ledger.now = max(self.now(), moment)
            arrived = int(np.count_nonzero(open_.arrived_by(wait.until)))
            enough = wait.reports is not None and arrived >= wait.reports
            if enough or moment >= wait.until:
                return True
            if open_.lost > lost_before:
                return False
            self.wire.sleep(min(POLL, max(wait.until - self.now(), 0.0)))

    def _clip(self, open_: OpenRound) -> None:
        """Scale down the updates of the round that are much longer than usual."""
        for client in self.clipper.clip(open_, self.dispatcher.accepted, self.model):
            self.clients.clips[client] += 1

    def _merge(self, open_: OpenRound) -> tuple[UsedReports, Reports] | None:
        """Ask the policy for coefficients, and move the model; None if it would not be finite."""
        index = np.flatnonzero(open_.reported)
        reports, held = self.books.offer(open_.jobs, index)
        accepted = [self.dispatcher.accepted[open_.records[row].key] for row in index.tolist()]
        accepted += [self.held[k] for k in held.tolist()]
        updates = [report.vector for report in accepted if report.vector is not None]
        reports = self._reveal(reports, accepted, updates)
        merge = self.calls.merge(self.policy, reports, self.global_model.layout.size)
        if merge.memory is not None and not finite(merge.memory.reshape(-1)):
            return None
        if not self.global_model.move(self.ledger.version, updates, reports.version, merge):
            return None
        if merge.memory is not None:
            self.ledger.remember(merge.memory, merge.memory_rows)
        self.vectors.adopt(merge, reports.client)
        return UsedReports.by(merge, index, held), reports

    def _reveal(self, reports: Reports, accepted: list[Report], updates: list[Vector]) -> Reports:
        """The reports with what the policy needs to see of each."""
        needs, size, found = self.policy.needs, self.global_model.layout.size, dict[str, Any]()
        if needs & {"updates", "models"}:
            found["updates"] = np.array(updates, dtype=np.float32).reshape(-1, size)
        if "models" in needs:
            found |= self._clear_models(reports, found["updates"])
        # A held report may lack a number that the policy of its round did not need: NaN.
        if "losses" in needs:
            found["losses"] = np.array([report.loss for report in accepted], dtype=float)
        if "rms losses" in needs:
            found["rms_losses"] = np.array([report.rms_loss for report in accepted], dtype=float)
        if "labels" in needs:
            counts = np.array([report.labels for report in accepted], dtype=np.int64)
            found["labels"] = counts.reshape(len(accepted), self.validator.classes or 0)
        if "rates" in needs:
            found["rates"] = np.array([report.rate for report in accepted], dtype=float)
        if "offsets" in needs:
            found["offsets"] = self.vectors.offsets(reports.client, reports.invitation, size)
            found["common"] = self.vectors.common_or_zeros(size)
        return replace(reports, **found)

    def _clear_models(self, reports: Reports, updates: Vector) -> dict[str, Vector]:
        """The clients' models, a row per report, and the global model, as vectors."""
        versions = self.global_model.versions
        rows = [versions[began].astype(np.float32) for began in reports.version.tolist()]
        began = np.array(rows, dtype=np.float32).reshape(updates.shape)
        return {"models": began + updates, "model": self.model.astype(np.float32)}

    def _settle(
        self, open_: OpenRound, merged: tuple[UsedReports, Reports] | None, *, spoilt: bool
    ) -> PlayedRound:
        """Book the round, and keep what later rounds need."""
        ledger, policy, outcome, jobs = self.ledger, self.policy, open_.outcome, open_.jobs
        used, reports = merged or (UsedReports.nothing(), None)
        outcome.closed, outcome.succeeded = ledger.now, merged is not None
        outcome.invited = open_.invited
        rows = np.flatnonzero(open_.reported).tolist()
        uploaded = sum(self.dispatcher.upload(open_.records[row]) for row in rows)
        outcome.bytes_up = uploaded * self._bytes
        closed = Closed.of(outcome.succeeded, jobs, open_.reported, used.jobs, reports)
        carried = self.calls.carry(policy, closed, len(jobs), spoilt)
        unfinished = Fate.CANCELLED if ledger.now < open_.until else Fate.LATE
        repeats = open_.invitations > 1
        closing = ClosingRound(outcome, jobs, open_.reported, used, carried, unfinished, repeats)
        played = self.book(open_, closing, spoilt=spoilt)
        self.calls.observe(policy, outcome, closed)
        self.failures = 0 if outcome.succeeded else self.failures + 1
        self.open = None
        return played

    def book(self, open_: OpenRound, closing: ClosingRound, *, spoilt: bool = False) -> PlayedRound:
        """Close the books of a round, and keep what later rounds need.

        Args:
            open_: the round.
            closing: how it closes.
            spoilt: whether its update would have put NaN or infinity into the model.
        """
        fates = self.books.close(closing)
        self.running = fates.running
        records = self.kept_records.settle(open_, closing.used, fates)
        responses = open_.responses(fates, self.ledger.now)
        self._keep(open_, fates)
        self.outcomes.append(open_.outcome)
        self.responses += responses
        return PlayedRound(open_.outcome, records, responses, open_.lost_carries, spoilt)

    def _keep(self, open_: OpenRound, fates: JobFates) -> None:
        """Keep what later rounds may need, and delete the rest."""
        books, running = self.books, self.running
        for row in fates.kept.tolist():
            record = open_.records[row]
            if books.kept.held[record.client]:
                self.held[record.client] = self.dispatcher.accepted[record.key]
        self.held = {k: report for k, report in self.held.items() if books.kept.held[k]}
        self.kept_records.forget(books.kept.held)
        keys = [*zip(running.client.tolist(), running.invitation.tolist(), strict=True)]
        rows = [open_.row(key) for key in keys]
        self.records = [open_.records[row] for row in rows if row is not None]
        self.dispatcher.forget(set(keys))
        keeps = books.kept.held | self.ledger.local
        versions = {self.ledger.version, *running.version.tolist()}
        self.global_model.forget(versions | set(books.kept.version[keeps].tolist()))
        self.vectors.forget([*running.invitation.tolist(), *books.kept.invitation[keeps].tolist()])

    def add_score(self, score: Score) -> None:
        """Record an evaluation of the present model, which policies see if they need scores."""
        self.scores.append((len(self.outcomes), score))
        self.ledger.score = ModelScore(score.loss, score.accuracy, self.ledger.version)

    def observations(self) -> Observations | None:
        """The last response times, as a controller sees them; None if there are none yet."""
        if not self.responses:
            return None
        return Observations(
            [np.nan if r.seconds is None else r.seconds for r in self.responses],
            [np.inf if r.deadline is None else r.deadline for r in self.responses],
            [r.name for r in self.responses],
        )

    def history(self) -> History:
        """What has happened so far."""
        model = self.model.astype(np.float32)
        return self.books.history(
            self.title, self.seed, self.by_round, self.running, self.scores, model
        )
