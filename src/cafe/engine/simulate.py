"""A simulation from its arguments to its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from cafe.control import Controller
from cafe.engine.run import Run
from cafe.engine.stopping import StoppingRule
from cafe.errors import check_whole
from cafe.federation import Federation
from cafe.learn.base import Score
from cafe.rounds.history import History
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.task import Task


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
    stopping = StoppingRule(rounds, updates, time)
    run = Run(
        federation,
        policy,
        task,
        seed=seed,
        crash=crash,
        patience=patience,
        secure_aggregation=secure_aggregation,
    )
    for _ in run_rounds(run, stopping, evaluate_every):
        if progress is not None:
            progress(min(stopping.share_done(run), 1.0))
    return run.history()


def run_rounds(
    run: Run, stopping: StoppingRule, evaluate_every: int | None = None
) -> Iterator[tuple[Outcome, Score | None]]:
    """Play to the end: each round's outcome, with the model's score where it was measured then.

    It is measured after every so many rounds, or at every hundredth part of the run; and after the
    last round.
    """
    every = None if evaluate_every is None else check_whole("evaluate_every", evaluate_every)
    trained = run.training is not None
    with _one_blas_thread_if(trained):
        while (before := stopping.share_done(run)) < 1:
            outcome = run.step()
            share = stopping.share_done(run)
            due = (
                int(100 * share) > int(100 * before)
                if every is None
                else run.ledger.round % every == 0
            )
            yield outcome, run.evaluate() if trained and (due or share >= 1) else None


def _one_blas_thread_if(trained: bool) -> AbstractContextManager[None]:
    """Hold BLAS to one thread for as long as a model is trained; see ``learn.threads``."""
    if not trained:
        return nullcontext()
    from cafe.learn.threads import one_blas_thread

    return one_blas_thread()
