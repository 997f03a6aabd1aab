"""The simulator again, slow and obvious: read it first.

One client at a time, one event at a time, every report trained as soon as it comes in. It shares
with the engine only the policies, the checks of their answers, and what is random (each draw has an
address, see ``randomness``; batches are drawn so too).
Tests hold the engine to it: the books to the bit, the model to rounding.
"""

from __future__ import annotations

from cafe.control import Controller
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
    """Play rounds, as :func:`cafe.engine.simulate` does."""
    run = Reference(federation, policy, task, seed=seed, crash=crash)
    for _ in range(rounds):
        run.step()
    return run.history()
