"""Checks of a run's arguments and policies, and their errors."""

from __future__ import annotations

import numpy as np

from cafe.errors import InfeasibleError, InputError, check_whole, is_finite_number
from cafe.federation import Federation
from cafe.learn.server_optimisers import ServerOptimiser
from cafe.rounds.answers import HOLD, Carried, Wait
from cafe.rounds.jobs import Running
from cafe.rounds.policy import PER_CLIENT_NEEDS, Policy
from cafe.task import Task


def check_secure(policy: Policy, secure: bool) -> None:
    """Raise an error for a policy that needs what secure aggregation hides from the server."""
    unmet = sorted(policy.needs & PER_CLIENT_NEEDS)
    if secure and unmet:
        raise InputError(
            f"The policy {policy.name} needs {' and '.join(unmet)} of single clients, but secure "
            "aggregation shows the server only sums. Choose another policy, or set "
            "secure_aggregation to false."
        )


def server_optimiser(policy: Policy, given: ServerOptimiser | None) -> ServerOptimiser | None:
    """The server optimiser of a run: that of its policy, or the one that was given.

    Raises:
        InputError: if there are two.
    """
    if policy.server is not None and given is not None:
        raise InputError(
            f"The policy {policy.name} has its own server optimiser, {policy.server}. Got another "
            f"one, {given}. Leave that out, or choose a policy without one."
        )
    return given if policy.server is None else policy.server


def check_same_optimiser(policy: Policy, before: Policy) -> None:
    """Raise an error if a controller chooses a policy with another server optimiser."""
    if policy.server != before.server:
        raise InputError(
            "A run has one server optimiser, because its state depends on all earlier updates. "
            f"The controller chose {policy} with {policy.server} after {before} with "
            f"{before.server}. Choose policies with the same server optimiser."
        )


def check_held(policy: Policy, carried: Carried, secure: bool) -> None:
    """Raise an error if a policy holds single reports with secure aggregation."""
    if secure and np.any(np.asarray(carried.jobs, dtype=np.int64) & int(HOLD)):
        raise InputError(
            f"The policy {policy.name} holds reports of single clients (HOLD in carry), but secure "
            "aggregation shows the server only sums. Choose another policy, or set "
            "secure_aggregation to false."
        )


def check_hazards(crash: float, patience: int) -> None:
    """Raise an error for a crash probability outside [0, 1), or a patience below 1."""
    if isinstance(crash, bool) or not is_finite_number(crash) or not 0 <= crash < 1:
        raise InputError(f"crash must be a probability in [0, 1). Got {crash!r}.")
    check_whole("patience", patience)


def check_setting(federation: Federation, task: Task | None, crash: float, patience: int) -> None:
    """Raise an error for a federation, a task and hazards that cannot be run together."""
    if not isinstance(federation, Federation):
        raise InputError(f"The federation must be a cafe.Federation. Got {federation!r}.")
    if task is not None and not isinstance(task, Task):
        raise InputError(f"The task must be a cafe.Task, or None to train no model. Got {task!r}.")
    if task is not None and task.clients != federation.clients:
        raise InputError(
            f"The task has data for {task.clients} clients and the federation has "
            f"{federation.clients}: both must have the same number of clients."
        )
    check_hazards(crash, patience)


def endless_wait(round_: int, jobs: Running, wait: Wait, gave_up: str = "") -> InfeasibleError:
    """The error for a wait that would never end.

    Args:
        round_: number of the round.
        jobs: its jobs.
        wait: what the policy waits for.
        gave_up: if clients are clusters and some have given up, what happened and what to change.
    """
    coming = int(np.count_nonzero(np.isfinite(jobs.arrival)))
    wanted = "more" if wait.reports is None else f"{wait.reports}"
    why = gave_up or (
        "Clients that are absent or crashed never report. Give the policy a deadline."
    )
    return InfeasibleError(
        f"Round {round_} waits for {wanted} reports, but only {coming} can come, so that it would "
        f"never end. {why}"
    )
