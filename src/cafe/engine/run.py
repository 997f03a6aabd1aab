"""The simulator's loop: one round after the other, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cafe.controllers import (
    Choice,
    Controller,
    Fixed,
    as_controller,
    ask_controller,
    display_name,
)
from cafe.engine import attendance
from cafe.engine.arrivals import Arrivals
from cafe.engine.books import Books
from cafe.engine.client_accuracy import accuracy_by_class, accuracy_by_client
from cafe.engine.closing_round import ClosingRound
from cafe.engine.failures import Failures
from cafe.engine.fates import JobFates, UsedReports
from cafe.engine.new_jobs import JobStarter
from cafe.engine.policy_calls import PolicyCalls, score_is_due
from cafe.engine.response_times import ResponseTimes
from cafe.engine.run_checks import (
    check_same_optimiser,
    check_secure,
    check_setting,
    endless_wait,
    server_optimiser,
)
from cafe.engine.traffic import Traffic
from cafe.engine.training import Training, finite
from cafe.errors import InputError, check_flag
from cafe.federation import Federation, Indices
from cafe.latency.base import Floats
from cafe.learn.base import Model, Score
from cafe.randomness import check_seed
from cafe.rounds import answer_checks
from cafe.rounds.answers import COMMIT, Verdict
from cafe.rounds.history import Column, History, outcome_columns
from cafe.rounds.jobs import Invitation, Reports, Running
from cafe.rounds.ledger import Ledger, ModelScore
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import PER_CLIENT_NEEDS, Policy
from cafe.rounds.round_views import Closed, Waiting
from cafe.task import Task


class _Merged(NamedTuple):
    """The result of a round's merge.

    Attributes:
        succeeded: whether the model moved.
        used: the reports in the update.
        reports: the reports that the policy was offered; None if there was no update.
        spoilt: whether the update failed because it would have put NaN or infinity in the model.
    """

    succeeded: bool
    used: UsedReports
    reports: Reports | None = None
    spoilt: bool = False


_NOT_MERGED = _Merged(False, UsedReports.nothing())
_SPOILT = _Merged(False, UsedReports.nothing(), spoilt=True)


class Run:
    """A simulated run. :meth:`step` plays one round.

    Args:
        federation: the clients.
        policy: how the server runs its rounds, or a controller that chooses a policy for each.
        task: what is learned; without a task no model is trained.
        seed: the seed of all random numbers.
        crash: the probability that a client which has begun a job never reports.
        patience: the number of failed rounds in a row after which :meth:`step` raises an error.
        secure_aggregation: raise an error for policies that need single updates or losses.

    Example:
        >>> import cafe
        >>> from cafe.engine import Run
        >>> federation = cafe.Federation(clients=20, latency=cafe.Exponential(rate=1.0))
        >>> run = Run(federation, cafe.policies.mcu(quorum=5, deadline=1.0), seed=1)
        >>> run.step().succeeded
        True
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
        self.secure_aggregation = check_flag("secure_aggregation", secure_aggregation)
        self.controller = as_controller(policy)
        examples = federation.examples if task is None else task.shards.counts
        self.books = Books.new(np.broadcast_to(examples, federation.clients).astype(np.int64))
        self.calls = PolicyCalls(self.books.ledger, self.seed, secure_aggregation)
        self.running = Running.empty()
        absence = federation.presence
        self.presence = None if absence is None else absence.begin(federation.clients, self.seed)
        self.starter = JobStarter(federation, task, self.seed, crash, self.presence)
        self.training = None if task is None else Training.new(task, self.seed)
        self.traffic = Traffic(0 if self.training is None else self.training.bytes)
        self._parameters = None if self.training is None else self.training.parameters
        self.ledger.update_size = None if secure_aggregation else self._parameters
        self.outcomes: list[Outcome] = []
        self.scores: list[tuple[int, Score]] = []
        # The number of examples of an evaluation; None: all. See cafe.engine.evaluation_budget.
        self.evaluated_on: int | None = None
        self._by_client: tuple[int, Floats | None] | None = None  # of this version
        self._scored: dict[int | None, tuple[int, Score]] = {}  # the last, by number of examples
        self.responses = ResponseTimes()
        self.failures = Failures()
        # An optional callback, called with each round's jobs and their fates.
        self.on_round_end: Callable[[Running, JobFates], None] | None = None
        # If clients are clusters: returns why some of them have given up; "" if none has.
        self.why_gave_up: Callable[[], str] | None = None
        self._checked: Policy | None = None
        # Why the controller changed the policy, with the numbers of the rounds.
        self.reasons: list[tuple[int, str]] = []
        self.policy = self._choose().policy

    @property
    def ledger(self) -> Ledger:
        """What the server knows."""
        return self.books.ledger

    def _choose(self) -> Choice:
        """What the controller chooses for the next round."""
        if isinstance(self.controller, Fixed):
            choice = Choice(self.controller.policy)
        else:
            self.ledger.forecasts = None
            choice = ask_controller(self.controller, self.ledger, self.responses.observations())
        if choice.policy is not self._checked:
            self._check_policy(choice.policy)
            self._checked = choice.policy
        return choice

    def _check_policy(self, policy: Policy) -> None:
        unmet = sorted(policy.needs & (PER_CLIENT_NEEDS | {"scores"}))
        if self.training is None and unmet:
            raise InputError(
                f"The policy {policy.name} needs {' and '.join(unmet)}, which exist only with a "
                "task. Give a task."
            )
        check_secure(policy, self.secure_aggregation)
        policy.check(self.federation, self.crash)
        if self._checked is not None:
            check_same_optimiser(policy, self._checked)
        elif self.training is not None:
            self.training.server = server_optimiser(policy, self.training.task.server)

    def step(self) -> Outcome:
        """Play one round, from the broadcast to the close."""
        outcome = self._open()
        arrivals = self._invite(outcome)
        verdict, unfinished = self._wait(arrivals, outcome)
        merged = self._merge(arrivals) if verdict is COMMIT else _NOT_MERGED
        self._settle(outcome, arrivals, merged, unfinished)
        return outcome

    def _open(self) -> Outcome:
        """Find out which clients are present and which policy applies, and open the round."""
        ledger = self.ledger
        if self.presence is not None:
            attendance.mark_absent(ledger, self.presence)
        choice = self._choose()
        policy = self.policy = choice.policy
        ledger.control = choice.state
        if choice.reason:
            self.reasons.append((ledger.round, choice.reason))
        if ledger.hand_over(policy.name) and self.training is not None:
            self.training.vectors.clear()
        if score_is_due(policy, ledger):
            score = self._score()
            ledger.score = ModelScore(score.loss, score.accuracy, ledger.version)
        ledger.forecasts = self._forecast if "forecasts" in policy.needs else None
        if self.presence is not None:
            attendance.wait_for_clients(ledger, self.presence, policy.opens_with)
        ledger.opened = ledger.now
        return Outcome(ledger.round, ledger.opened, ledger.now, False)

    def _invite(self, outcome: Outcome) -> Arrivals:
        """Ask the policy which clients to invite, and start their jobs."""
        return Arrivals(self.running, self._start(self.calls.invite(self.policy), outcome))

    def _start(self, invitation: Invitation, outcome: Outcome) -> Running:
        """Start an invitation's jobs. Their arrival times are drawn now; no decision sees them."""
        ledger, policy, work, vectors = self.ledger, self.policy, invitation.work, 0
        new = self.starter.start(policy, ledger, invitation)
        if self.training is not None:
            vectors = self.training.start(ledger.invitations, ledger.round, work, new, policy)
        self.traffic.count_down(outcome, new, work, vectors)
        ledger.invitations += 1
        ledger.mark(new.client, None, True)
        return new

    def _wait(self, arrivals: Arrivals, outcome: Outcome) -> tuple[Verdict, Fate]:
        """Advance the clock as the policy asks, and start the jobs that it invites meanwhile.

        Returns:
            The verdict, and the fate of jobs that the close cuts off.
        """
        ledger, policy, until = self.ledger, self.policy, float("inf")
        while True:
            ledger.working = len(arrivals) - arrivals.count
            waiting = Waiting(arrivals.count, arrivals.invited, ledger.working, arrivals.look)
            answer = self.calls.close(policy, waiting, lambda: arrivals.jobs.client)
            if isinstance(answer, Verdict):
                return answer, Fate.CANCELLED if ledger.now < until else Fate.LATE
            if isinstance(answer, Invitation):
                arrivals.add(self._start(answer, outcome))
                continue
            until = answer.until
            if not until >= ledger.now or (
                answer.reports is not None and answer.reports <= arrivals.count
            ):
                raise answer_checks.past_wait_error(policy, ledger.now, answer)
            before = arrivals.count
            # A report that came before the round opened counts from now on.
            moment = max(arrivals.wait(answer, ledger), ledger.now)
            if moment == float("inf"):
                why = "" if self.why_gave_up is None else self.why_gave_up()
                raise endless_wait(ledger.round, arrivals.jobs, answer, why)
            if moment == ledger.now and arrivals.count == before:
                raise answer_checks.past_wait_error(policy, ledger.now, answer)
            ledger.now = moment

    def _merge(self, arrivals: Arrivals) -> _Merged:
        """Ask the policy for coefficients, compute the updates in use, and move the model."""
        jobs, index = arrivals.jobs, np.flatnonzero(arrivals.reported)
        reports, held = self.books.offer(jobs, index)
        training = self.training
        if training is None:
            merge = self.calls.merge(self.policy, reports, None)
        else:
            chains = training.chains.of_reports(jobs, index, held)
            reports = training.describe(reports, chains, self.policy.needs)
            merge = self.calls.merge(self.policy, reports, self._parameters)
        if merge.memory is not None and not finite(merge.memory.reshape(-1)):
            return _SPOILT
        if training is not None and not training.merge(chains, reports, merge):
            return _SPOILT
        if merge.memory is not None:
            self.ledger.remember(merge.memory, merge.memory_rows)
        return _Merged(True, UsedReports.by(merge, index, held), reports)

    def _settle(
        self, outcome: Outcome, arrivals: Arrivals, merged: _Merged, unfinished: Fate
    ) -> None:
        """Ask the policy what to keep after the round, book the round, and drop the rest."""
        policy, jobs, reported = self.policy, arrivals.jobs, arrivals.reported
        outcome.closed, outcome.succeeded = self.ledger.now, merged.succeeded
        outcome.invited = arrivals.invited
        closed = Closed.of(merged.succeeded, jobs, reported, merged.used.jobs, merged.reports)
        carried = self.calls.carry(policy, closed, len(jobs), merged.spoilt)
        closing = ClosingRound(
            outcome, jobs, reported, merged.used, carried, unfinished, arrivals.repeats
        )
        fates = self.books.close(closing)
        self.running = fates.running
        self.traffic.count_up(outcome, jobs, reported, self.running)
        if self.training is not None:
            self.training.carry_over(jobs, fates.kept, self.running, self.books.keeping)
        if self.on_round_end is not None:
            self.on_round_end(jobs, fates)
        self.outcomes.append(outcome)
        if not isinstance(self.controller, Fixed):
            self.responses.add_round(jobs, reported, fates, outcome.closed)
        self.calls.observe(policy, outcome, closed)
        self.failures.add(outcome, jobs, merged.spoilt)
        self.failures.check(self.patience, policy, outcome)

    def _forecast(self, clients: Indices, until: float) -> Floats:
        """The probability that each client stays present until a time."""
        if self.presence is None:
            return np.ones(len(clients))
        return self.presence.forecast(clients, self.ledger.now, until)

    def why_failing(self) -> str:
        """A sentence: how many rounds in a row have failed, and the reason if it is known."""
        return self.failures.describe(self.policy, self.outcomes[-1])

    def set_model(self, model: Model) -> None:
        """Replace the server's model between two rounds. The new model is a new version.

        Jobs that still run, and reports that are held, began from an older version, and count as
        stale if they are merged. A learning rate that decays per update does not count the
        replacement as an update.

        Args:
            model: in the form of the task's learner; ignored without a task.
        """
        self.ledger.version += 1
        if self.training is not None:
            self.training.set_model(model)

    def evaluate(self) -> Score:
        """Evaluate the model now, and add the score to the history."""
        score = self._score(self.evaluated_on)
        self.scores.append((len(self.outcomes), score))
        return score

    def evaluate_clients(self) -> None:
        """Measure the accuracy of the model for each client, for the history.

        There is none for tasks without classes, for a model with an infinite loss, and for one that
        no update has changed.
        """
        if self.training is None:
            raise InputError("There is no model to evaluate: the run has no task.")
        by_class = self.accuracy_by_class()
        task = self.training.task
        found = None if by_class is None else accuracy_by_client(task, by_class)
        self._by_client = (self.training.version, found)

    def accuracy_by_class(self) -> Floats | None:
        """The accuracy of the model on the test examples of each class; None if there is none."""
        training = self.training
        if training is None or not training.version or not training.task.data.classes:
            return None
        if not np.isfinite(self._score(self.evaluated_on).loss):
            return None
        examples = training.evaluation_examples(self.evaluated_on)
        return accuracy_by_class(training.task.learner, training.model, examples)

    def _score(self, examples: int | None = None) -> Score:
        """The model's score on this many examples, or on all. No version is evaluated twice."""
        if self.training is None:
            raise InputError("There is no model to evaluate: the run has no task.")
        version = self.training.version
        known = self._scored.get(examples)
        if known is None or known[0] != version:
            score = self.training.score(examples)
            if not np.isfinite(score.loss):  # the accuracy of such a model means nothing
                score = Score(score.loss, None)
            known = self._scored[examples] = (version, score)
        return known[1]

    @property
    def by_round(self) -> dict[str, Column]:
        """The rounds so far, as an array per field."""
        return outcome_columns(self.outcomes)

    def history(self) -> History:
        """What has happened so far."""
        training = self.training
        history = self.books.history(
            display_name(self.controller),
            self.seed,
            self.by_round,
            self.running,
            None if training is None else self.scores,
            None if training is None else training.task.learner.save(training.model).copy(),
        )
        if training is None or self._by_client is None or self._by_client[0] != training.version:
            return history
        return replace(history, accuracy_by_client=self._by_client[1])


def _keep_freed_memory() -> None:
    """Make the C library keep the memory of freed arrays instead of returning it to the system.

    Otherwise every long vector is new memory, and touching it for the first time takes longer than
    the computation. glibc adapts its threshold to the largest block that was freed, up to 32 MiB.
    With other C libraries this has no effect.
    """
    np.empty(31 << 20, dtype=np.uint8)
