"""The simulator: virtual time, real decisions, and gradients only where they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from cafe.engine.run import Run
from cafe.errors import InputError
from cafe.federation import Federation
from cafe.learn.base import Score
from cafe.rounds.history import History
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.task import Task

__all__ = ["Limits", "Run", "play", "simulate"]


def simulate(
    federation: Federation,
    policy: Policy,
    task: Task | None = None,
    *,
    rounds: int | None = None,
    updates: int | None = None,
    time: float | None = None,
    seed: int = 0,
    crash: float = 0.0,
    evaluate_every: int | None = None,
    patience: int = 1000,
    progress: Callable[[float], None] | None = None,
) -> History:
    """Play rounds in virtual time, and train if there is a task.

    The first limit that is reached ends the run; at least one is needed.

    Args:
        federation: who takes part.
        policy: how the server runs its rounds, such as ``cafe.policies.mcu(...)``.
        task: what is learned; without one only the books are kept.
        rounds: how many rounds at most, failed ones included.
        updates: how many successful rounds at most.
        time: stop after the first round that closes at this virtual time or later.
        seed: of all that is random; the same seed gives the same history.
        crash: the probability that a job which was begun is never reported.
        evaluate_every: measure the model every so many rounds; left out, it is measured about 100
            times. It is measured at the end in any case.
        patience: so many failed rounds in a row end the run with an error.
        progress: called with the share that is done.
    """
    limits = Limits(rounds, updates, time)
    run = Run(federation, policy, task, seed=seed, crash=crash, patience=patience)
    for _ in play(run, limits, limits.every(evaluate_every)):
        if progress is not None:
            progress(min(limits.reached(run), 1.0))
    return run.history()


def play(run: Run, limits: Limits, every: int) -> Iterator[tuple[Outcome, Score | None]]:
    """Play to the end: each round's outcome, with the model's score where it was measured then.

    It is measured after every so many rounds, and after the last.
    """
    with _one_blas_thread_if(run.training is not None):
        while limits.reached(run) < 1:
            outcome = run.step()
            due = run.ledger.round % every == 0 or limits.reached(run) >= 1
            yield outcome, run.evaluate() if due and run.training is not None else None


class Limits:
    """When a run ends."""

    def __init__(self, rounds: int | None, updates: int | None, time: float | None) -> None:
        if rounds is None and updates is None and time is None:
            raise InputError("Say when to stop: give rounds, updates or time.")
        for name, value in (("rounds", rounds), ("updates", updates), ("time", time)):
            whole = name == "time" or isinstance(value, int)
            if value is not None and (not whole or isinstance(value, bool) or not value > 0):
                sort = "a positive number" if name == "time" else "a whole number from 1 up"
                raise InputError(f"{name} must be {sort}. Got {value!r}.")
        self.rounds, self.updates, self.time = rounds, updates, time

    def reached(self, run: Run) -> float:
        """The share of the nearest limit that is used up; 1 when the run is over."""
        ledger = run.ledger
        pairs = (
            (ledger.round, self.rounds),
            (ledger.version, self.updates),
            (ledger.now, self.time),
        )
        return max(done / limit for done, limit in pairs if limit is not None)

    def every(self, asked: int | None) -> int:
        """How many rounds lie between two evaluations."""
        if asked is not None:
            if not isinstance(asked, int) or asked < 1:
                raise InputError(f"evaluate_every must be a whole number from 1 up. Got {asked!r}.")
            return asked
        return max((self.rounds or self.updates or 1000) // 100, 1)


def _one_blas_thread_if(trained: bool) -> AbstractContextManager[None]:
    """Hold BLAS to one thread for as long as a model is trained; see ``learn.threads``."""
    if not trained:
        return nullcontext()
    from cafe.learn.threads import one_blas_thread

    return one_blas_thread()
