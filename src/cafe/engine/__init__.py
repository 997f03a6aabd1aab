"""The simulator: virtual time, real decisions, and gradients only where they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from cafe.control import Controller
from cafe.engine.run import Run
from cafe.errors import InputError, check_positive, check_whole
from cafe.federation import Federation
from cafe.learn.base import Score
from cafe.rounds.history import History
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.task import Task

__all__ = ["Limits", "Run", "play", "simulate"]


def simulate(
    federation: Federation,
    policy: Policy | Controller,
    task: Task | None = None,
    *,
    rounds: int | None = None,
    updates: int | None = None,
    time: float | None = None,
    seed: int = 0,
    crash: float = 0.0,
    evaluate_every: int | None = None,
    patience: int = 1000,
    secure_aggregation: bool = False,
    progress: Callable[[float], None] | None = None,
) -> History:
    """Play rounds in virtual time, and train if there is a task.

    The first limit that is reached ends the run; at least one is needed.

    Args:
        federation: who takes part.
        policy: how the server runs its rounds, such as ``cafe.policies.mcu(...)``, or a controller
            that chooses a policy for each round.
        task: what is learned; without one only the books are kept.
        rounds: how many rounds at most, failed ones included.
        updates: how many successful rounds at most.
        time: stop after the first round that closes at this virtual time or later.
        seed: of all that is random; the same seed gives the same history.
        crash: the probability that a job which was begun is never reported.
        evaluate_every: measure the model every so many rounds; left out, it is measured about 100
            times. It is measured at the end in any case.
        patience: so many failed rounds in a row end the run with an error.
        secure_aggregation: refuse policies that need to see single clients' updates, losses or
            label counts, or that hold their reports: the server would only see sums.
        progress: called with the share that is done.
    """
    limits = Limits(rounds, updates, time)
    run = Run(
        federation,
        policy,
        task,
        seed=seed,
        crash=crash,
        patience=patience,
        secure_aggregation=secure_aggregation,
    )
    for _ in play(run, limits, evaluate_every):
        if progress is not None:
            progress(min(limits.reached(run), 1.0))
    return run.history()


def play(
    run: Run, limits: Limits, evaluate_every: int | None = None
) -> Iterator[tuple[Outcome, Score | None]]:
    """Play to the end: each round's outcome, with the model's score where it was measured then.

    It is measured after every so many rounds, or at every hundredth part of the run; and after the
    last round.
    """
    every = None if evaluate_every is None else check_whole("evaluate_every", evaluate_every)
    trained = run.training is not None
    with _one_blas_thread_if(trained):
        while (before := limits.reached(run)) < 1:
            outcome = run.step()
            share = limits.reached(run)
            due = (
                int(100 * share) > int(100 * before)
                if every is None
                else run.ledger.round % every == 0
            )
            yield outcome, run.evaluate() if trained and (due or share >= 1) else None


EXACT = 1e-9  # ten rounds of 0.1 add up to less than 1 by rounding, and are 1 all the same


class _HasLedger(Protocol):
    @property
    def ledger(self) -> Ledger: ...


class Limits:
    """When a run ends."""

    def __init__(self, rounds: int | None, updates: int | None, time: float | None) -> None:
        if rounds is None and updates is None and time is None:
            raise InputError("Say when to stop: give rounds, updates or time.")
        rounds = None if rounds is None else check_whole("rounds", rounds)
        updates = None if updates is None else check_whole("updates", updates)
        time = None if time is None else check_positive("time", time)
        self.rounds, self.updates, self.time = rounds, updates, time

    def reached(self, run: _HasLedger) -> float:
        """The share of the nearest limit that is used up; 1 when the run is over."""
        ledger = run.ledger
        pairs = (
            (ledger.round, self.rounds),
            (ledger.version, self.updates),
            (ledger.now, self.time),
        )
        share = max(done / limit for done, limit in pairs if limit is not None)
        return 1.0 if 1.0 - EXACT < share < 1.0 else share


def _one_blas_thread_if(trained: bool) -> AbstractContextManager[None]:
    """Hold BLAS to one thread for as long as a model is trained; see ``learn.threads``."""
    if not trained:
        return nullcontext()
    from cafe.learn.threads import one_blas_thread

    return one_blas_thread()
