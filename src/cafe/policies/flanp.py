"""FLANP: start with the fastest clients, and double their number (Reisizadeh et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.choose import highest
from cafe.decisions.client_memory import COUNT, TOTAL, add_response_times, client_memory
from cafe.decisions.weigh import Mean
from cafe.errors import InputError, check_positive, check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Invitation, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed


@dataclass(frozen=True)
class _Fastest:
    """Invite all clients in profiling rounds, then as many of the fastest as the stage has."""

    first: int
    profiling: int
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        idle = ledger.idle
        if ledger.round < self.profiling or ledger.memory is None:
            return Invitation(idle, work=self.work)
        memory = client_memory(ledger, 2)
        seconds = np.full(len(idle), np.inf)  # of clients that have never reported
        np.divide(memory[TOTAL, idle], memory[COUNT, idle], seconds, where=memory[COUNT, idle] > 0)
        count = ledger.state or self.first
        return Invitation(highest(idle, -seconds, count, rng), work=self.work)


def _merge(ledger: Ledger, reports: Reports) -> Merge:
    """The mean, and the response times of all reports so far."""
    return replace(Mean()(ledger, reports), memory=add_response_times(ledger, reports))


@dataclass(frozen=True)
class _Stages:
    """The number of clients in the stage: it doubles when the mean gradient is small."""

    first: int
    profiling: int
    threshold: float

    def __call__(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> Any:
        count, reports = ledger.state or self.first, closed.reports
        if outcome.round < self.profiling or reports is None or reports.updates is None:
            return count
        share = 1.0 / (len(reports.steps) * np.maximum(reports.steps, 1))
        mean = (share.astype(np.float32) @ reports.updates).astype(float)
        square = float(mean @ mean)
        grows = square <= self.threshold / count
        return min(2 * count, ledger.clients) if grows else count


@recipe("synchronous", "Reisizadeh et al. (2020)")
def flanp(
    *,
    threshold: float,
    first: int = 2,
    profiling: int = 1,
    steps: int = 1,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """FLANP: start with the fastest clients, and double their number when these have converged.

    "Straggler-Resilient Federated Learning: Leveraging the Interplay Between Statistical Accuracy
    and System Heterogeneity" (2020). Training goes through stages. In a stage the n fastest clients
    work in every round. It ends when the model is as accurate as their data allow: when the squared
    norm of the mean gradient is at most 2 mu V, where V is proportional to 1 / n. The next stage
    has 2 n clients and starts from the model of the last one. In the last stage, all clients work.

    The server learns how fast clients are from their reports. In the first rounds, the profiling,
    all clients work. Later, the fastest are those with the lowest mean time over all their reports;
    clients that have never reported come last. If a client is away, the next fastest takes its
    place.

    Differs from the publication: local work is plain SGD instead of FedGATE, which corrects local
    gradients; the step size is that of the task in all stages; clients are known to be fast from
    their reports instead of in advance. The server estimates the gradient by the mean over reports
    of the update divided by its number of steps. This contains the learning rate, and with
    mini-batches also noise, so the threshold must be chosen accordingly.

    Not verified: the number of clients in the first stage, and the constants of the threshold.

    Args:
        threshold: a stage of n clients ends when the squared norm of the mean update per step is at
            most this number divided by n.
        first: number of clients in the first stage, at most that of all clients.
        profiling: number of rounds at the start in which all clients work.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed, at most ``first``.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(16)
        >>> policy = cafe.policies.flanp(threshold=0.02)
        >>> run = cafe.simulate(cafe.Federation(16, cafe.Exponential(1.0)), policy, task, rounds=30)
        >>> print(sorted(set(run.by_round["invited"].tolist())))
        [2, 4, 8, 16]
    """
    given = non_defaults(flanp, locals())
    first, profiling = check_whole("first", first), check_whole("profiling", profiling)
    threshold = check_positive("threshold", threshold)
    if check_whole("The quorum", quorum) > first:
        raise InputError(
            f"The quorum must be at most first ({first}), the number of clients in the first "
            f"stage. Got {quorum}: that stage would never end. Lower the quorum or raise first."
        )
    return Policy(
        "flanp",
        _Fastest(first, profiling, Work(steps)),
        merge=_merge,
        carry=DropAll(),
        observe=_Stages(first, profiling, threshold),
        needs=frozenset({"updates"}),
        parameters=given,
        up_to_clients={"first": first},
        **closing(quorum, deadline, all_in=True),
    )
