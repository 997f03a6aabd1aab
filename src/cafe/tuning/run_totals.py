"""One simulated run of a setting, and the totals that costs are calculated from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.analysis.run_costs import amounts_by_round
from cafe.engine import Run
from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.learn.threads import one_blas_thread
from cafe.policies import resolve
from cafe.rounds import History, Policy
from cafe.task import Task
from cafe.tuning.stand_in_task import stand_in_task, unmet_needs

LEAST_ROUNDS = 20


@dataclass(frozen=True)
class RunLength:
    """How long a run is: until its clients have been merged this often on average.

    Attributes:
        merges: merges per client, on average.
        most: the maximum number of rounds.
    """

    merges: float
    most: int


@dataclass(frozen=True)
class RunRequest:
    """A run to simulate.

    Attributes:
        federation: the clients.
        name: the name of the policy.
        parameters: the recipe's arguments.
        task: what is learned; None: a stand-in if the policy needs a task.
        length: how long the run is.
        seed: the seed of its random numbers.
    """

    federation: Federation
    name: str
    parameters: Mapping[str, Any]
    task: Task | None
    length: RunLength
    seed: int


@dataclass(frozen=True)
class RunTotals:
    """Totals of a run.

    Attributes:
        amounts: sums over rounds, by the names of ``amounts_by_round``; also ``jobs``, and
            ``held``, the length of each round times the jobs that started in it.
        merged: how often each client's reports were used.
        seed: the seed of the run.
    """

    amounts: Mapping[str, float]
    merged: Floats
    seed: int

    @classmethod
    def of(cls, history: History) -> RunTotals:
        """The totals of a run."""
        by_round = amounts_by_round(history)
        jobs = np.asarray(history.by_round["invited"], dtype=float)
        by_round |= {"jobs": jobs, "held": jobs * by_round["time"]}
        amounts = {name: float(values.sum()) for name, values in by_round.items()}
        return cls(amounts, history.merged_by_client.astype(float), history.seed)


@dataclass(frozen=True)
class NoRun:
    """A setting that cannot be run.

    Attributes:
        reason: why, in a sentence.
        invalid: whether its numbers do not fit together; otherwise a round would never end.
    """

    reason: str
    invalid: bool


def simulate_totals(request: RunRequest) -> RunTotals | NoRun:
    """Simulate a run; the result is the same in every process.

    Example:
        >>> import cafe
        >>> from cafe.tuning.run_totals import RunLength, RunRequest, simulate_totals
        >>> federation = cafe.Federation(20, cafe.Exponential(rate=1.0))
        >>> length = RunLength(merges=10.0, most=100)
        >>> given = {"quorum": 1, "deadline": 1.0}
        >>> totals = simulate_totals(RunRequest(federation, "mcu", given, None, length, seed=1))
        >>> totals.amounts["rounds"]
        20.0
    """
    try:
        policy = resolve(request.name)(**request.parameters)
        assert isinstance(policy, Policy)
        return RunTotals.of(_play(policy, request))
    except InfeasibleError as error:
        return NoRun(f"{error}", invalid=False)
    except InputError as error:
        return NoRun(f"{error}", invalid=True)


def _play(policy: Policy, request: RunRequest) -> History:
    length, federation = request.length, request.federation
    task = request.task
    if task is None and unmet_needs(policy):
        task = stand_in_task(federation.clients)
    run = Run(federation, policy, task, seed=request.seed, patience=length.most + 1)
    wanted, used = length.merges * federation.clients, 0
    with nullcontext() if task is None else one_blas_thread():
        for number in range(length.most):
            if number >= LEAST_ROUNDS and used >= wanted:
                break
            used += run.step().used
    return run.history()
