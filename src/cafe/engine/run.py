"""The virtual-time loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cafe.control import Controller, Fixed, as_controller, ask_controller, display_name
from cafe.engine import attendance
from cafe.engine.arrivals import Arrivals
from cafe.engine.books import Books
from cafe.engine.closing_round import ClosingRound
from cafe.engine.failures import Failures
from cafe.engine.fates import JobFates, UsedReports
from cafe.engine.new_jobs import JobStarter
from cafe.engine.policy_calls import PolicyCalls
from cafe.engine.response_times import ResponseTimes
from cafe.engine.run_checks import check_secure, check_setting
from cafe.engine.training import Training
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation, Indices
from cafe.latency.base import Floats
from cafe.learn.base import Model, Score
from cafe.randomness import Stream, check_seed
from cafe.rounds import answer_checks
from cafe.rounds.answers import COMMIT, Verdict, Wait
from cafe.rounds.history import Column, History, outcome_columns
from cafe.rounds.jobs import Invitation, Reports, Running, Status
from cafe.rounds.ledger import Ledger, ModelScore
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import PER_CLIENT_NEEDS, Policy
from cafe.rounds.round_views import Closed, Waiting
from cafe.task import Task


class Run:
    """A run in the making: :meth:`step` plays one round.

    Args:
        federation: who takes part.
        policy: how the server runs its rounds, or a controller that chooses a policy for each.
        task: what is learned; without one only the books are kept.
        seed: of all that is random.
        crash: the probability that a job which was begun is never reported.
        patience: so many failed rounds in a row end the run with an error.
        secure_aggregation: refuse policies that need to see single updates or losses.
    """

    def __init__(
        self,
        federation: Federation,
        policy: Policy | Controller,
        task: Task | None = None,
        *,
        seed: int = 0,
        crash: float = 0.0,
        patience: int = 1000,
        secure_aggregation: bool = False,
    ) -> None:
        check_setting(federation, task, crash, patience)
        _keep_freed_memory()
        self.federation, self.seed = federation, check_seed(seed)
        self.crash, self.patience = crash, patience
        if not isinstance(secure_aggregation, bool):
            raise InputError(
                f"secure_aggregation must be True or False. Got {secure_aggregation!r}."
            )
        self.secure_aggregation = secure_aggregation
        self.controller = as_controller(policy)
        examples = federation.examples if task is None else task.shards.counts
        self.books = Books.new(np.broadcast_to(examples, federation.clients).astype(np.int64))
        self.calls = PolicyCalls(self.books.ledger, self.seed, secure_aggregation)
        self.running = Running.empty()
        absence = federation.presence
        self.presence = None if absence is None else absence.begin(federation.clients, self.seed)
        self.starter = JobStarter(federation, task, self.seed, crash, self.presence)
        self.training = None if task is None else _training(task, self.seed)
        self._bytes = 0 if self.training is None else self.training.bytes
        self._parameters = None if self.training is None else self.training.parameters
        self.uploads: dict[int, float] = {}  # by invitation, where it is not 1
        self.outcomes: list[Outcome] = []
        self.scores: list[tuple[int, Score]] = []
        self._scored: tuple[int, Score] | None = None
        self.responses = ResponseTimes()
        self.failures = Failures()
        # An optional callback: it is given each round's jobs and what became of them.
        self.watch: Callable[[Running, JobFates], None] | None = None
        self._checked: Policy | None = None
        self.policy = self._choose()

    @property
    def ledger(self) -> Ledger:
        """What the server knows."""
        return self.books.ledger

    def _choose(self) -> Policy:
        """The policy of the next round."""
        if isinstance(self.controller, Fixed):
            policy = self.controller.policy
        else:
            self.ledger.forecasts = None
            policy = ask_controller(self.controller, self.ledger, self.responses.observations())
        if policy is not self._checked:
            self._check_policy(policy)
            self._checked = policy
        return policy

    def _check_policy(self, policy: Policy) -> None:
        unmet = sorted(policy.needs & (PER_CLIENT_NEEDS | {"scores"}))
        if self.training is None and unmet:
            raise InputError(
                f"The policy {policy.name} needs to see {' and '.join(unmet)}, and there are none "
                "without a task: give one."
            )
        check_secure(policy, self.secure_aggregation)
        policy.check(self.federation, self.crash)

    def step(self) -> Outcome:
        """Play one round, from the broadcast to the close."""
        ledger = self.ledger
        if self.presence is not None:
            attendance.look(ledger, self.presence)
        policy = self.policy = self._choose()
        if "scores" in policy.needs:
            self._rate(policy)
        ledger.forecasts = self._forecast if "forecasts" in policy.needs else None
        if self.presence is not None:
            attendance.gather(ledger, self.presence, policy.quorum)
        ledger.opened = ledger.now
        outcome = Outcome(ledger.round, ledger.opened, ledger.now, False)
        first = self.calls.invite(policy)
        open_ = Arrivals(self.running, self._start(first, outcome))
        repeats, verdict, early = self._wait(open_, outcome)
        jobs, reported = open_.jobs, open_.reported

        index = np.flatnonzero(reported)
        used, reports, spoilt = UsedReports.nothing(), None, False
        if verdict is COMMIT:
            merged = self._merge(jobs, index)
            spoilt = merged is None
            used, reports = merged or (used, None)
        outcome.closed, outcome.succeeded = ledger.now, verdict is COMMIT and not spoilt
        outcome.invited = open_.invited
        closed = Closed.of(outcome.succeeded, jobs, reported, used.jobs, reports)
        carried = self.calls.carry(policy, closed, len(jobs), spoilt)
        unfinished = Fate.CANCELLED if early else Fate.LATE
        fates = self.books.close(
            ClosingRound(outcome, jobs, reported, used, carried, unfinished, repeats)
        )
        self.running = fates.running
        self._count_bytes(outcome, jobs, index)
        if self.training is not None:
            self._remember(jobs, fates)
        if self.watch is not None:
            self.watch(jobs, fates)
        self.outcomes.append(outcome)
        if not isinstance(self.controller, Fixed):
            self.responses.add_round(jobs, reported, fates, ledger.now)
        self.calls.observe(policy, outcome, closed)
        self.failures.note(outcome, jobs, spoilt)
        self.failures.check(self.patience, policy, outcome)
        return outcome

    def _forecast(self, clients: Indices, until: float) -> Floats:
        """How likely each client is to stay until a time."""
        if self.presence is None:
            return np.ones(len(clients))
        return self.presence.forecast(clients, self.ledger.now, until)

    def _start(self, invitation: Invitation, outcome: Outcome) -> Running:
        """Start an invitation's jobs. Their arrival times are drawn now; no decision sees them."""
        ledger, policy = self.ledger, self.policy
        number = ledger.invitations
        new = self.starter.start(policy, ledger, invitation)
        ledger.invitations += 1
        ledger.mark(new.client, None, True)
        if self.training is not None:
            self.training.begin(number, ledger.round, invitation.work, new.client[new.local])
        work, sent = invitation.work, len(new)
        if not new.all_expected:
            sent -= int(np.count_nonzero(new.status == Status.ABSENT))
        outcome.downloads += sent
        outcome.bytes_down += sent * work.download * self._bytes
        if self.training is not None and self.training.vectors.used:
            outcome.bytes_down += self._push(self.training, new, number) * self._bytes
        if work.upload != 1.0:
            self.uploads[number] = work.upload
        return new

    def _push(self, training: Training, new: Running, number: int) -> int:
        """Note the vectors that an invitation's jobs use: how many clients are sent one."""
        if new.local.any():
            raise answer_checks.local_models_error(self.policy)
        began = new.client[new.status != Status.ABSENT]
        return training.vectors.begin(number, new.client).count(began)

    def _wait(self, open_: Arrivals, outcome: Outcome) -> tuple[bool, Verdict, bool]:
        """Advance the clock as the policy asks.

        Returns:
            Whether clients were invited while the round was open, the verdict, and whether the
            round closed early.
        """
        ledger, policy = self.ledger, self.policy
        until, repeats = float("inf"), False
        while True:
            ledger.working = len(open_) - open_.count
            waiting = Waiting(open_.count, open_.invited, ledger.working, open_.look)
            answer = self.calls.close(policy, waiting, lambda: open_.jobs.client)
            if isinstance(answer, Verdict):
                return repeats, answer, ledger.now < until
            if isinstance(answer, Invitation):
                open_.add(self._start(answer, outcome))
                repeats = True
                continue
            until = answer.until
            if not until >= ledger.now or (
                answer.reports is not None and answer.reports <= open_.count
            ):
                raise answer_checks.past_wait_error(policy, ledger.now, answer)
            before = open_.count
            # A report that came before the round opened counts from now on.
            moment = max(open_.wait(answer, ledger), ledger.now)
            if moment == float("inf"):
                self._refuse_to_wait(open_.jobs, answer)
            if moment == ledger.now and open_.count == before:
                raise answer_checks.past_wait_error(policy, ledger.now, answer)
            ledger.now = moment

    def _refuse_to_wait(self, jobs: Running, wait: Wait) -> None:
        coming = int(np.count_nonzero(np.isfinite(jobs.arrival)))
        wanted = "more" if wait.reports is None else f"{wait.reports}"
        raise InfeasibleError(
            f"Round {self.ledger.round} waits for {wanted} reports and only {coming} can come: "
            "clients that are absent or crashed never report, and the round would last for ever. "
            "Give the policy a deadline."
        )

    def _merge(self, jobs: Running, index: Indices) -> tuple[UsedReports, Reports] | None:
        """Ask the policy for coefficients, and move the model; None if that would spoil it."""
        policy = self.policy
        reports, held = self.books.offer(jobs, index)
        training, needs = self.training, policy.needs
        if training is not None:
            paths = training.paths(jobs, index, held)
            if needs & PER_CLIENT_NEEDS:
                reports = training.seen(reports, paths, needs)
        merge = self.calls.merge(policy, reports, self._parameters)
        if training is not None:
            if not training.merge(paths, merge, reports.updates):
                return None
            training.vectors.adopt(merge, reports.client)
        return UsedReports.by(merge, index, held), reports

    def _remember(self, jobs: Running, fates: JobFates) -> None:
        """Remember how to compute what clients keep, and forget what nothing refers to."""
        training = self.training
        assert training is not None
        if len(fates.kept):
            training.keep(jobs.take(fates.kept))
        training.forget(self.running, self.ledger.local | self.books.kept.held)

    def _count_bytes(self, outcome: Outcome, jobs: Running, index: Indices) -> None:
        """Count the bytes of a round's reports."""
        weight = float(len(index))
        if self.uploads:
            numbers, counts = jobs.invitation[index], dict[float, int]()
            for number, share in self.uploads.items():
                counts[share] = counts.get(share, 0) + int(np.count_nonzero(numbers == number))
            counts[1.0] = len(index) - sum(counts.values())
            weight = sum(share * count for share, count in sorted(counts.items()))
            going_on = set(self.running.invitation.tolist())
            self.uploads = {n: share for n, share in self.uploads.items() if n in going_on}
        outcome.bytes_up = weight * self._bytes

    def _rate(self, policy: Policy) -> None:
        """Evaluate the model if the last score is too old for the policy."""
        ledger = self.ledger
        if ledger.score is None or ledger.version - ledger.score.version >= policy.score_every:
            score = self._score()
            ledger.score = ModelScore(score.loss, score.accuracy, ledger.version)

    def why_failing(self) -> str:
        """How many rounds in a row have failed, and why as far as that is known."""
        return self.failures.describe(self.policy, self.outcomes[-1])

    def set_model(self, model: Model) -> None:
        """Replace the server's model between two rounds. The other model is a new version.

        Jobs that still run, and reports that are held, began from an older version, and count as
        stale if they are merged. A learning rate that decays per update does not count it.

        Args:
            model: as the task's learner has it; of no importance without a task.
        """
        self.ledger.version += 1
        if self.training is not None:
            self.training.set_model(model)

    def evaluate(self) -> Score:
        """Measure the model now; this changes nothing."""
        score = self._score()
        self.scores.append((len(self.outcomes), score))
        return score

    def _score(self) -> Score:
        if self.training is None:
            raise InputError("There is no model to evaluate: the run has no task.")
        version = self.training.version
        if self._scored is None or self._scored[0] != version:
            score = self.training.score()
            if not np.isfinite(score.loss):  # of a loss that is not a number nothing is right
                score = Score(score.loss, None)
            self._scored = (version, score)
        return self._scored[1]

    @property
    def by_round(self) -> dict[str, Column]:
        """The rounds so far, as an array per field."""
        return outcome_columns(self.outcomes)

    def history(self) -> History:
        """What has happened so far."""
        training = self.training
        return self.books.history(
            display_name(self.controller),
            self.seed,
            self.by_round,
            self.running,
            None if training is None else self.scores,
            None if training is None else training.task.learner.save(training.model).copy(),
        )


def _training(task: Task, seed: int) -> Training:
    start = task.learner.start(Stream(seed, "start").at(0))
    return Training(task, seed, {0: start})


def _keep_freed_memory() -> None:
    """Have the C library keep what arrays free, rather than give it back and ask for it again.

    A long vector is otherwise new memory every time, and its first touch takes longer than all
    that is done with it. glibc learns from the largest block that is freed, up to 32 MiB; others
    lose nothing by it.
    """
    np.empty(31 << 20, dtype=np.uint8)
