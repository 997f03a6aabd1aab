"""The virtual-time loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cafe.engine.books import Books, Used, as_closed, checked
from cafe.engine.training import Training
from cafe.errors import InfeasibleError, InputError, is_finite_number, whole
from cafe.federation import Federation, Indices
from cafe.learn.base import Score
from cafe.randomness import Stream, check_seed
from cafe.rounds.history import Column, History, columns
from cafe.rounds.jobs import Invitation, Mask, Reports, Running, shared
from cafe.rounds.ledger import Ledger, Waiting
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy import COMMIT, Policy, Verdict, Wait
from cafe.task import Task


class Run:
    """A run in the making: :meth:`step` plays one round.

    Args:
        federation: who takes part.
        policy: how the server runs its rounds.
        task: what is learned; without one only the books are kept.
        seed: of all that is random.
        crash: the probability that a job which was begun is never reported.
        patience: so many failed rounds in a row end the run with an error.
    """

    def __init__(
        self,
        federation: Federation,
        policy: Policy,
        task: Task | None = None,
        *,
        seed: int = 0,
        crash: float = 0.0,
        patience: int = 1000,
    ) -> None:
        _check(federation, policy, task, crash, patience)
        _keep_freed_memory()
        self.federation, self.policy, self.seed = federation, policy, check_seed(seed)
        self.crash, self.patience = crash, patience
        self._latency, self._crashes = Stream(self.seed, "latency"), Stream(self.seed, "crash")
        self._choices = Stream(self.seed, "policy")
        examples = federation.examples if task is None else task.shards.counts
        self.books = Books.new(np.broadcast_to(examples, federation.clients).astype(np.int64))
        self.running = Running.none()
        self.training = None if task is None else _training(task, self.seed)
        self.outcomes: list[Outcome] = []
        self.scores: list[tuple[int, Score]] = []
        self._scored: tuple[int, Score] | None = None
        # Failed rounds in a row, and the fastest report in them with its client.
        self.failures: tuple[int, float, int] = (0, float("inf"), -1)

    @property
    def ledger(self) -> Ledger:
        """What the server knows."""
        return self.books.ledger

    def step(self) -> Outcome:
        """Play one round, from the broadcast to the close."""
        ledger, policy = self.ledger, self.policy
        ledger.opened = ledger.now
        invitation = policy.invite(ledger, self._choices.at(ledger.round))
        new = self._start(invitation)
        jobs = self.running.then(new)
        reported, verdict, early = self._wait(jobs, len(new))

        outcome = Outcome(ledger.round, ledger.opened, ledger.now, verdict is COMMIT)
        outcome.invited = len(new)
        index = np.flatnonzero(reported)
        used, reports = Used.nothing(), None
        if verdict is COMMIT:
            used, reports = self._merge(jobs, index)
        closed = as_closed(outcome.succeeded, jobs, reported, used, reports)
        carried = policy.carry(ledger, closed)
        unfinished = Fate.CANCELLED if early else Fate.LATE
        self.running, kept = self.books.close(outcome, jobs, reported, used, carried, unfinished)
        if self.training is not None:
            self._remember(jobs, kept)
        self.outcomes.append(outcome)
        if policy.observe is not None:
            ledger.state = policy.observe(ledger, outcome, closed)
        self._persevere(outcome, jobs)
        return outcome

    def _start(self, invitation: Invitation) -> Running:
        """The jobs that an invitation starts, with the arrivals that fate has in store."""
        ledger = self.ledger
        clients = ledger.checked(invitation.clients)
        n = len(clients)
        latency = self.federation.draw(self._latency.at(ledger.round), clients)
        arrival = ledger.now + latency
        stop = arrival
        if self.crash > 0:
            rng = self._crashes.at(ledger.round)
            crashes = (rng.random(n) < self.crash) & np.isfinite(arrival)
            # Where in its work a client crashes is anybody's guess.
            stop = np.where(crashes, ledger.now + latency * rng.random(n), arrival)
            arrival = np.where(crashes, np.inf, arrival)
        local = shared(False, n)
        if invitation.local is not None:
            local = invitation.local & ledger.local[clients]
        if self.training is not None:
            self.training.begin(ledger.round, invitation.work, clients[local])
        return Running(
            client=clients,
            start=shared(ledger.now, n),
            version=shared(ledger.version, n),
            round=shared(ledger.round, n),
            local=local,
            arrival=arrival,
            stop=stop,
        )

    def _wait(self, jobs: Running, invited: int) -> tuple[Mask, Verdict, bool]:
        """Let time pass as the policy asks. Who reported, the verdict, and was it early."""
        ledger = self.ledger
        reported = np.zeros(len(jobs), dtype=bool)
        until = float("inf")
        while True:
            count = int(np.count_nonzero(reported))
            answer = self.policy.close(ledger, Waiting(count, invited, len(jobs) - count))
            if not isinstance(answer, Wait):
                return reported, answer, ledger.now < until
            until = answer.until
            moment, reported = waited(jobs, answer)
            if moment == float("inf"):
                self._refuse_to_wait(jobs, answer)
            more = int(np.count_nonzero(reported)) - count
            if not moment >= ledger.now or more < 0 or (moment == ledger.now and more == 0):
                raise InputError(
                    f"The policy {self.policy.name} waits for a moment that has passed: its close "
                    "decision must commit or fail."
                )
            ledger.now = moment

    def _refuse_to_wait(self, jobs: Running, wait: Wait) -> None:
        coming = int(np.count_nonzero(np.isfinite(jobs.arrival)))
        raise InfeasibleError(
            f"Round {self.ledger.round} waits for {wait.reports} reports and only {coming} can "
            "come: clients that are absent or crashed never report, and the round would last for "
            "ever. Give the policy a deadline."
        )

    def _merge(self, jobs: Running, index: Indices) -> tuple[Used, Reports]:
        """Ask the policy for coefficients, and move the model if there is one."""
        ledger, held = self.ledger, self.books.held(jobs, index)
        reports = self.books.reports(jobs, index, held)
        training, needs = self.training, self.policy.needs
        if training is not None:
            paths = training.paths(jobs, index, held)
            if "updates" in needs:
                reports = replace(reports, updates=training.updates(paths))
            if "losses" in needs:
                reports = replace(reports, losses=training.losses(paths))
        merge = checked(self.policy, self.policy.merge(ledger, reports), reports)
        if training is not None:
            if reports.updates is not None:
                training.merge_given(paths, merge, reports.updates)
            else:
                training.merge(paths, merge)
        return Used.by(merge, index, held), reports

    def _remember(self, jobs: Running, kept: Indices) -> None:
        """Keep the local models that the books keep, as recipes."""
        training = self.training
        assert training is not None
        if len(kept):
            training.keep(jobs.take(kept))
        training.forget(self.running, self.ledger.local | self.books.kept.held)

    def _persevere(self, outcome: Outcome, jobs: Running) -> None:
        """Give up after too many failures in a row, and say what would have been needed."""
        if outcome.succeeded:
            self.failures = (0, float("inf"), -1)
            return
        count, took, client = self.failures
        if len(jobs):
            taken = jobs.arrival - jobs.start
            first = int(np.argmin(taken))
            took, client = min((took, client), (float(taken[first]), int(jobs.client[first])))
        self.failures = (count + 1, took, client)
        if count + 1 >= self.patience:
            advice = "Lengthen the deadline, lower the quorum, or raise patience."
            raise InfeasibleError(f"{self.lament()} {advice}")

    def lament(self) -> str:
        """How many rounds in a row have failed, and how fast the fastest report in them was."""
        count, took, client = self.failures
        last = self.outcomes[-1]
        fastest = (
            f"The fastest report in them took {took:.4g} (client {client})"
            if np.isfinite(took)
            else "In them nobody reported at all"
        )
        return (
            f"{count} rounds in a row have failed under {self.policy}. {fastest}, and the last "
            f"round lasted {last.closed - last.opened:.4g} and had {last.reports} reports."
        )

    def evaluate(self) -> Score:
        """Measure the model now; this changes nothing."""
        if self.training is None:
            raise InputError("There is no model to evaluate: the run has no task.")
        version = self.training.version
        if self._scored is None or self._scored[0] != version:
            score = self.training.score()
            if not np.isfinite(score.loss):  # of a model that is not a number nothing is right
                score = Score(score.loss, None)
            self._scored = (version, score)
        self.scores.append((len(self.outcomes), self._scored[1]))
        return self._scored[1]

    @property
    def by_round(self) -> dict[str, Column]:
        """The rounds so far, as an array per field."""
        return columns(self.outcomes)

    def history(self) -> History:
        """What has happened so far."""
        training = self.training
        return self.books.history(
            str(self.policy),
            self.seed,
            self.by_round,
            self.running,
            None if training is None else self.scores,
            None if training is None else training.task.learner.save(training.model).copy(),
        )


def waited(jobs: Running, wait: Wait) -> tuple[float, Mask]:
    """When a wait ends, and who has reported by then; ties go to the smaller client."""
    if wait.reports is not None and wait.reports <= len(jobs):
        count = max(wait.reports, 1)
        last = float(np.partition(jobs.arrival, count - 1)[count - 1])
        if last <= wait.until and last < float("inf"):
            reported = jobs.arrival < last
            ties = np.flatnonzero(jobs.arrival == last)
            ties = ties[np.argsort(jobs.client[ties], kind="stable")]
            reported[ties[: count - int(np.count_nonzero(reported))]] = True
            return last, reported
    return wait.until, jobs.arrival <= wait.until


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


def check_hazards(crash: float, patience: int) -> None:
    """Refuse a chance of crashes that is none, and a patience of no round at all."""
    if not is_finite_number(crash) or not 0 <= crash < 1:
        raise InputError(f"crash is a probability, at least 0 and below 1. Got {crash!r}.")
    whole("patience", patience)


def _check(
    federation: Federation, policy: Policy, task: Task | None, crash: float, patience: int
) -> None:
    if not isinstance(federation, Federation):
        raise InputError(f"A federation is needed, such as cafe.Federation. Got {federation!r}.")
    if not isinstance(policy, Policy):
        raise InputError(
            "A policy is needed, such as cafe.policies.mcu(quorum=1, deadline=0.5). "
            f"Got {policy!r}."
        )
    if task is not None and not isinstance(task, Task):
        raise InputError(f"A task is made by cafe.Task(...), or None for the books. Got {task!r}.")
    if task is not None and task.clients != federation.clients:
        raise InputError(
            f"The task has data for {task.clients} clients and the federation has "
            f"{federation.clients}: each client needs its own examples, and no others."
        )
    check_hazards(crash, patience)
    unmet = sorted(policy.needs & {"updates", "losses"})
    if task is None and unmet:
        raise InputError(
            f"The policy {policy.name} needs to see {' and '.join(unmet)}, and there are none "
            "without a task: give one."
        )
    policy.check(federation, crash)
