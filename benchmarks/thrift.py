"""The cost of failed rounds: a quorum that is rarely met compared with one that always is."""

from __future__ import annotations

from time import perf_counter

import cafe
from benchmarks.ours import task
from benchmarks.workloads import Workload
from cafe.policies import mcu


def measure(
    workload: Workload, quorum: int, rounds: int, repetitions: int, deadline: float = 0.3
) -> dict[str, object]:
    """Time with this quorum divided by time with a quorum of 1, for the same number of rounds."""
    federation = cafe.Federation(workload.clients, cafe.Exponential(rate=1.0))
    given = task(workload)
    shares, succeeded = [], []
    for seed in range(repetitions + 1):  # the first warms up
        took = []
        for needed in (quorum, 1):
            policy = mcu(quorum=needed, deadline=deadline)
            began = perf_counter()
            history = cafe.simulate(
                federation, policy, given, rounds=rounds, evaluate_every=rounds, seed=seed
            )
            took.append(perf_counter() - began)
            if needed == quorum and seed:
                succeeded.append(history.updates / history.rounds)
        if seed:
            shares.append(took[0] / took[1])
    return {
        "quorum": quorum,
        "deadline": deadline,
        "rounds": rounds,
        "share_of_time": shares,
        "share_of_rounds_that_succeeded": succeeded,
    }
