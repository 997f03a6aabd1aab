"""This project, through its public door and with everything that a user gets.

Latencies are drawn, the ledger is kept, the policy decides, batches are dealt. What is done once
per run counts too: the start, and one evaluation at the end, of as many examples as a batch has.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

import cafe
from benchmarks.workloads import RATE, Workload
from cafe.data import IID, Examples
from cafe.learn.mlp import MLP
from cafe.policies import mcu
from cafe.task import Task


class Ours:
    """cafe.simulate as a contestant; every call has a seed of its own."""

    name = "cafe"

    def __init__(self) -> None:
        self._calls = 0

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Play so many rounds."""
        self._calls += 1
        federation = cafe.Federation(workload.clients, cafe.Exponential(rate=1.0))
        policy = mcu(quorum=1, deadline=workload.deadline, steps=workload.steps)
        given = task(workload)
        began = perf_counter()
        cafe.simulate(
            federation, policy, given, rounds=rounds, evaluate_every=rounds, seed=self._calls
        )
        return perf_counter() - began


@cache
def task(workload: Workload) -> Task:
    """The workload's perceptron, and its examples dealt at random."""
    x, y = workload.data()
    shards = IID()(y, workload.clients, np.random.default_rng(0))
    inputs, *hidden, classes = workload.widths
    return Task(
        Examples(x, y),
        shards,
        MLP(inputs, classes, tuple(hidden)),
        test=Examples(x[: workload.batch], y[: workload.batch]),
        batch=workload.batch,
        rate=RATE,
    )
