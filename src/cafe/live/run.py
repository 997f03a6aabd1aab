"""The loop on real clients: the engine's books, and a wire where the engine draws latencies."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cafe.control import Controller
from cafe.engine.books import Books, Used, as_closed, checked
from cafe.engine.run import waited
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Indices
from cafe.fitting.observations import Observations
from cafe.learn.base import Score
from cafe.learn.server import ServerOptimiser
from cafe.live.admission import Gate, Guard
from cafe.live.desk import Desk
from cafe.live.layout import Arrays, Vector
from cafe.live.opened import Open, Response, Round
from cafe.live.pending import Pending
from cafe.live.records import counted
from cafe.live.robust import Combine
from cafe.live.roster import Roster
from cafe.live.weights import Weights
from cafe.live.wire import Order, Wire
from cafe.randomness import Stream, check_seed
from cafe.rounds.history import Column, Columns, History
from cafe.rounds.jobs import Invitation, Mask, Reports, Running
from cafe.rounds.ledger import Ledger, Waiting
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import COMMIT, DROP, RUN, Carried, Policy, Verdict, Wait

POLL = 0.15  # seconds between two looks at what has come
SLOW = 2.0  # seconds that a look may take: one at the deadline finds what came before it
RECALL = 20_000  # response times that a controller is shown, the last ones


class LiveRun:
    """A run on real clients: :meth:`step` plays one round.

    Args:
        wire: the way to the clients.
        controller: which policy holds in each round.
        model: the arrays to begin with.
        seed: of all that the server draws.
        guard: limits on what clients may report.
        combine: how updates are put together.
        optimiser: what the server does with the update; None adds it.
        notice: called whenever something is to be seen, such as a report.
    """

    def __init__(
        self,
        wire: Wire,
        controller: Controller,
        model: Arrays,
        *,
        seed: int = 0,
        guard: Guard | None = None,
        combine: Combine | None = None,
        optimiser: ServerOptimiser | None = None,
        notice: Callable[[], None] = lambda: None,
    ) -> None:
        self.wire, self.controller, self.seed = wire, controller, check_seed(seed)
        self.notice = notice
        self.weights = Weights(model, combine, optimiser)
        self.roster = Roster()
        self.desk = Desk(wire, Gate(self.weights.layout, guard or Guard()), self.roster)
        self.books = Books.new(np.empty(0, dtype=np.int64))
        self.running = Running.none()
        self.pending = Pending()
        self.held: dict[int, Vector] = {}
        self.outcomes: list[Outcome] = []
        self.scores: list[tuple[int, Score]] = []
        self.responses: deque[Response] = deque(maxlen=RECALL)
        self.failures = 0
        self.open: Open | None = None
        self._choices = Stream(self.seed, "policy")
        self._columns = Columns()
        self._zero = wire.clock()
        self._asked: tuple[int, bytes] | None = None
        self.policy = self.choose()

    @property
    def title(self) -> str:
        """The policy, as it is written."""
        return titled(self.controller)

    @property
    def ledger(self) -> Ledger:
        """What the server knows."""
        return self.books.ledger

    @property
    def model(self) -> Vector:
        """The global model as one vector."""
        return self.weights.versions[self.ledger.version]

    @property
    def arrays(self) -> Arrays:
        """The global model as it is sent."""
        return self.weights.arrays(self.ledger.version)

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
        return self.roster.meet(present, self.books)

    def choose(self) -> Policy:
        """The policy of the next round; the controller is asked again if clients came or went."""
        ledger = self.ledger
        asked = (ledger.round, ledger.away.tobytes())
        if asked != self._asked:
            self.policy = self.controller(ledger, self.seen())
            refuse = getattr(self.policy.close, "check", None)
            if refuse is not None:  # a round that may never end: real clients get lost
                refuse(2**62, True)
            self._asked = asked
        return self.policy

    def step(self) -> Round:
        """Play one round, from the broadcast to the close."""
        ledger, policy = self.ledger, self.choose()
        ledger.now = ledger.opened = self.now()  # what the controller took is not the round's
        open_ = self.open = self._start(policy.invite(ledger, self._choices.at(ledger.round)))
        jobs = open_.jobs
        reported, verdict, early = self._wait(open_)
        used, reports = Used.nothing(), None
        merged = self._merge(jobs, np.flatnonzero(reported)) if verdict is COMMIT else None
        if merged is not None:
            used, reports = merged
        outcome = Outcome(ledger.round, ledger.opened, ledger.now, merged is not None)
        outcome.invited = open_.invited
        closed = as_closed(outcome.succeeded, jobs, reported, used, reports)
        carried = _without(policy.carry(ledger, closed), open_.given_up)
        spoilt = verdict is COMMIT and merged is None
        if spoilt:  # what is kept of it would spoil the next one too
            carried = replace(_without(carried, reported), kept=False)
        unfinished = Fate.CANCELLED if early else Fate.LATE
        before = copy.deepcopy(self.books.kept)
        self.running, kept = self.books.close(
            outcome, jobs, reported, used, carried, unfinished, open_.refused
        )
        stays = ledger.local | self.books.kept.held
        records = self.pending.settle(
            outcome, open_, reported, used, kept, self.running, unfinished, before, stays
        )
        if [*counted(records).values()] != outcome.fates.tolist():
            raise AssertionError(f"The books count {outcome.fates}, the records {counted(records)}")
        responses = self._responses(open_)
        self._remember(open_, kept)
        self.outcomes.append(outcome)
        self.responses += responses
        if policy.observe is not None:
            ledger.state = policy.observe(ledger, outcome, closed)
        self.failures = 0 if outcome.succeeded else self.failures + 1
        self.open = None
        return Round(outcome, records, responses, open_.lost_carries, spoilt)

    def _start(self, invitation: Invitation) -> Open:
        """Send orders; the jobs that are open then."""
        ledger = self.ledger
        clients = ledger.checked(invitation.clients)
        n = len(clients)
        local = np.zeros(n, dtype=bool)
        if invitation.local is not None:
            local = invitation.local & ledger.local[clients]
        if local.any() and "local models" not in self.policy.needs:
            raise InputError(
                f"The policy {self.policy.name} lets clients go on from local models, and they "
                'keep none: name "local models" among what it needs.'
            )
        new = Running(
            client=clients,
            start=np.full(n, ledger.now),
            version=np.full(n, ledger.version, dtype=np.int64),
            round=np.full(n, ledger.round, dtype=np.int64),
            local=local,
            arrival=np.full(n, np.nan),
            stop=np.full(n, np.inf),
        )
        seconds = self._seconds(new)
        orders = [
            self._order(k, bool(own), invitation, seconds)
            for k, own in zip(clients.tolist(), local.tolist(), strict=True)
        ]
        sent = self.desk.send(orders, self.arrays, ledger.now)
        new.arrival[~np.array(sent, dtype=bool)] = np.inf
        jobs = self.running.then(new)
        records = [self.desk.records[k] for k in jobs.client.tolist()]
        return Open(jobs, records, np.zeros(len(jobs), dtype=bool), n)

    def _order(self, k: int, local: bool, invitation: Invitation, seconds: float | None) -> Order:
        kept = self.books.kept
        return Order(
            client=self.roster.names[k],
            number=k,
            round=self.ledger.round,
            version=self.ledger.version,
            seed=self.seed,
            work=invitation.work,
            seconds=seconds,
            carry="local models" in self.policy.needs,
            after=int(kept.round[k]) if local else None,
            began=int(kept.version[k]) if local else None,
        )

    def _seconds(self, new: Running) -> float | None:
        """How long clients may work: to the deadline, unless late jobs would be let run on."""
        ledger, n = self.ledger, len(new)
        nobody = np.zeros(n, dtype=bool)
        closed = as_closed(False, new, nobody, Used.nothing(), None)
        codes = np.asarray(self.policy.carry(ledger, closed).jobs, dtype=np.int64)
        answer = self.policy.close(ledger, Waiting(0, n, n + len(self.running)))
        if np.any(codes & int(RUN)) or not isinstance(answer, Wait) or np.isinf(answer.until):
            return None
        return answer.until - ledger.now

    def _wait(self, open_: Open) -> tuple[Mask, Verdict, bool]:
        """Let time pass as the policy asks. Who reported, the verdict, and was it early."""
        ledger, jobs = self.ledger, open_.jobs
        reported = np.zeros(len(jobs), dtype=bool)
        while True:
            count = int(np.count_nonzero(reported))
            over = int(np.count_nonzero(~reported & (jobs.arrival <= ledger.now)))
            coming = int(np.count_nonzero(open_.alive)) + over
            answer = self.policy.close(ledger, Waiting(count, open_.invited, coming))
            if not isinstance(answer, Wait):
                return reported, answer, ledger.now < open_.until
            passed = answer.reports is not None and answer.reports <= count
            if passed or not answer.until > ledger.now:
                raise InputError(
                    f"The policy {self.policy.name} waits for a moment that has passed: its close "
                    "decision must commit or fail."
                )
            if np.isinf(answer.until) and (answer.reports or count + coming + 1) > count + coming:
                raise InfeasibleError(
                    f"Round {ledger.round} waits for more reports than can come, without a "
                    "deadline: it would last for ever. Give the policy a deadline."
                )
            open_.until = answer.until
            self.notice()
            self._listen(open_, answer)
            _, reported = waited(jobs, answer)
            reported &= np.isfinite(jobs.arrival)  # a wait without end would count the lost

    def _listen(self, open_: Open, wait: Wait) -> None:
        """Look at what comes until the wait is over, or until somebody is known not to come."""
        jobs, ledger = open_.jobs, self.ledger
        known = open_.lost
        while True:
            moment = self.now()
            for reply in self.desk.replies(open_):
                at = moment if reply.at is None else reply.at - self._zero
                # What the last look finds had come by then; not if that look was held up.
                at = at if at > wait.until + SLOW else min(at, wait.until)
                self.desk.take(open_, reply, at, wait.until, self.model, ledger)
                self.notice()
            ledger.now = max(self.now(), moment)
            came = np.isfinite(jobs.arrival) & (jobs.arrival <= wait.until)
            arrived = int(np.count_nonzero(came))
            enough = wait.reports is not None and arrived >= wait.reports
            if enough or moment >= wait.until or open_.lost > known:
                return
            self.wire.sleep(min(POLL, max(wait.until - self.now(), 0.0)))

    def _merge(self, jobs: Running, index: Indices) -> tuple[Used, Reports] | None:
        """Ask the policy for coefficients, and move the model; None if that would spoil it."""
        ledger, policy, held = self.ledger, self.policy, self.books.held(jobs, index)
        reports = self.books.reports(jobs, index, held)
        came = [self.desk.arrived[k] for k in jobs.client[index].tolist()]
        updates = [report.update for report in came] + [self.held[k] for k in held.tolist()]
        if "updates" in policy.needs:
            rows = np.array(updates, dtype=np.float32)
            reports = replace(reports, updates=rows.reshape(-1, self.weights.layout.size))
        if "losses" in policy.needs:
            losses = [report.loss for report in came] + [np.nan] * len(held)
            reports = replace(reports, losses=np.array(losses))
        merge = checked(policy, policy.merge(ledger, reports), reports)
        moved = self.weights.move(ledger.version, updates, reports.version, merge)
        return (Used.by(merge, index, held), reports) if moved else None

    def _responses(self, open_: Open) -> list[Response]:
        """What the round tells about how long clients take; a job that runs on tells it later."""
        jobs, found = open_.jobs, []
        going_on = set(self.running.client.tolist())
        for row, record in enumerate(open_.records):
            waited_for = min(open_.until, self.ledger.now) - record.start
            if record.client in going_on or np.isinf(jobs.arrival[row]):
                continue
            took = None if record.arrived is None else _seconds(record.arrived - record.start)
            found.append(Response(record.name, took, _seconds(waited_for)))
        return found

    def _remember(self, open_: Open, kept: Indices) -> None:
        """Keep what a later round may need, and forget the rest."""
        books = self.books
        for k in open_.jobs.client[kept].tolist():
            if books.kept.held[k]:
                self.held[k] = self.desk.arrived[k].update
        self.held = {k: update for k, update in self.held.items() if books.kept.held[k]}
        self.desk.tidy(open_, set(self.running.client.tolist()))
        keeps = books.kept.held | self.ledger.local
        needed = {self.ledger.version, *self.running.version.tolist()}
        self.weights.forget(needed | set(books.kept.version[keeps].tolist()))

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


def titled(thing: object) -> str:
    """What a part of a run is called: its text, or its kind where the text is an address."""
    text = str(thing)
    return getattr(thing, "__name__", type(thing).__name__) if " at 0x" in text else text


def _without(carried: Carried, some: Mask) -> Carried:
    """What outlives a round, but for some of its jobs."""
    if not some.any():
        return carried
    codes = np.where(some, int(DROP), np.asarray(carried.jobs, dtype=np.int64))
    return replace(carried, jobs=codes)


def _seconds(passed: float) -> float:
    """To the microsecond, as in the file; never none at all, which no latency explains."""
    return max(round(passed, 6), 1e-6)
