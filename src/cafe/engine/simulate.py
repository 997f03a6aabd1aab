"""Simulate a run: from its arguments to its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from cafe.controllers import Controller
from cafe.engine.evaluation_budget import (
    can_evaluate_clients,
    has_budget,
    is_evaluation_due,
)
from cafe.engine.hierarchy_run import AnyRun, HierarchyRun, new_run
from cafe.engine.run import Run
from cafe.engine.stopping import StoppingRule
from cafe.errors import check_progress, check_type, check_whole
from cafe.federation import Federation
from cafe.keywords import explain_keywords
from cafe.learn.base import Score
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.history import History
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.task import Task


@explain_keywords
def simulate(
    federation: Federation,
    policy: Policy | Controller | Hierarchy,
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
    """Simulate rounds in virtual time, and train a model if there is a task.

    At least one of ``rounds``, ``updates`` and ``time`` is required. The first one that is reached
    ends the run.

    Args:
        federation: the clients.
        policy: how the server runs its rounds, such as ``cafe.policies.mcu(...)``, a controller
            that chooses a policy for each round, or a hierarchy: then the history has the rounds of
            the cloud, and costs and ages of clients.
        task: what is learned. Without a task no model is trained, and only times, fates and ages
            are simulated.
        rounds: the maximum number of rounds, including failed ones.
        updates: the maximum number of successful rounds.
        time: stop after the first round that closes at this virtual time or later.
        seed: the seed of all random numbers. The same seed gives the same history.
        crash: the probability that a client which has begun a job never reports.
        evaluate_every: the number of rounds between two evaluations of the model, on all test
            examples. By default, the model is evaluated about 100 times; a PyTorch module less
            often and on a part of the test examples, so that a run evaluates at most about a tenth
            as many examples as it trains on. It is always evaluated at the end.
        patience: the number of failed rounds in a row after which the run ends with an error.
        secure_aggregation: raise an error for policies that need the updates, losses or label
            counts of single clients, or that hold their reports. With secure aggregation the
            server only sees sums.
        progress: called after each round with the share of the run that is done.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=50, latency=cafe.Exponential(rate=1.0))
        >>> policy = cafe.policies.mcu(quorum=10, deadline=0.5)
        >>> history = cafe.simulate(federation, policy, rounds=100, seed=1)
        >>> history.rounds, history.updates
        (100, 100)
    """
    check_progress(progress)
    stopping = StoppingRule(rounds, updates, time)
    run = new_run(
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
    run: AnyRun, stopping: StoppingRule, evaluate_every: int | None = None
) -> Iterator[tuple[Outcome, Score | None]]:
    """Play rounds until the run ends.

    Args:
        run: the run. It may have been played in part already.
        stopping: when the run ends.
        evaluate_every: the number of rounds between two evaluations of the model; None: it is
            evaluated after every hundredth part of the run, or less often if its learner is costly,
            see :mod:`cafe.engine.evaluation_budget`. It is evaluated after the last round in any
            case, also for each client.

    Yields:
        The outcome of each round, and the model's score if it was evaluated after the round.
    """
    check_type("run", run, (Run, HierarchyRun), "a cafe.engine.Run")
    check_type("stopping", stopping, StoppingRule, "a cafe.engine.StoppingRule")
    every = None if evaluate_every is None else check_whole("evaluate_every", evaluate_every)
    trained = run.training is not None
    model_run = run if isinstance(run, Run) else run.cloud
    limited = every is None and has_budget(model_run)
    with _one_blas_thread_if(trained):
        while (before := stopping.share_done(run)) < 1:
            outcome = run.step()
            share = stopping.share_done(run)
            if limited:
                due = is_evaluation_due(model_run, before, share)
            elif every is None:
                due = int(100 * share) > int(100 * before)
            else:
                due = run.ledger.round % every == 0
            yield outcome, run.evaluate() if trained and (due or share >= 1) else None
        if trained and (not limited or can_evaluate_clients(model_run)):
            run.evaluate_clients()


def _one_blas_thread_if(trained: bool) -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, if a model is trained; see ``learn.threads``."""
    if not trained:
        return nullcontext()
    from cafe.learn.threads import one_blas_thread

    return one_blas_thread()
