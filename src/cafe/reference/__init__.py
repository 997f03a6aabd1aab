"""A second simulator, slow and simple. Read it before the engine.

It processes one client and one event at a time, and trains every report as soon as it arrives. It
shares with the engine only the policies, the checks of their answers, and the random numbers (see
``randomness``), including the batches. Tests compare the engine with it: the books must be
identical, and the models equal up to rounding.
"""

from __future__ import annotations

from cafe.controllers import Controller
from cafe.federation import Federation
from cafe.reference.loop import Reference
from cafe.reference.reference_jobs import KeptJob, ReferenceJob
from cafe.rounds.history import History
from cafe.rounds.policy import Policy
from cafe.task import Task

__all__ = ["KeptJob", "Reference", "ReferenceJob", "simulate"]


def simulate(
    federation: Federation,
    policy: Policy | Controller,
    task: Task | None = None,
    *,
    rounds: int,
    seed: int = 0,
    crash: float = 0.0,
) -> History:
    """Simulate this many rounds, as :func:`cafe.engine.simulate` does."""
    run = Reference(federation, policy, task, seed=seed, crash=crash)
    for _ in range(rounds):
        run.step()
    return run.history()
