"""This project through its public API, with all of its features.

Latencies are drawn, the ledger is kept, the policy decides and batches are drawn. The time includes
what is done once per run: the start, and one evaluation of a batch at the end.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

import cafe
from benchmarks.workloads import RATE, Workload
from cafe.data import IID, Examples
from cafe.learn.base import Learner
from cafe.learn.mlp import MLP
from cafe.policies import mcu
from cafe.task import Task

COMPILED = "cafe, compiled"


class Ours:
    """cafe.simulate as a contestant; every call uses a new seed.

    Args:
        compiled: whether Numba compiles the perceptron's gradients.
    """

    name = "cafe"
    networks: frozenset[str] | None = None

    def __init__(self, *, compiled: bool = False) -> None:
        self._calls, self._compiled = 0, compiled
        if compiled:
            self.name, self.networks = COMPILED, frozenset({"perceptron"})

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for this many rounds."""
        self._calls += 1
        federation = cafe.Federation(workload.clients, cafe.Exponential(rate=1.0))
        policy = mcu(quorum=1, deadline=workload.deadline, steps=workload.steps)
        given = task(workload, self._compiled)
        began = perf_counter()
        cafe.simulate(
            federation, policy, given, rounds=rounds, evaluate_every=rounds, seed=self._calls
        )
        return perf_counter() - began


@cache
def task(workload: Workload, compiled: bool = False) -> Task:
    """The workload's network and its randomly distributed examples."""
    x, y = workload.data()
    shards = IID()(y, workload.clients, np.random.default_rng(0))
    return Task(
        Examples(x, y),
        shards,
        learner(workload, compiled),
        test=Examples(x[: workload.batch], y[: workload.batch]),
        batch=workload.batch,
        rate=RATE,
    )


def learner(workload: Workload, compiled: bool) -> Learner:
    """The embedded perceptron, or PyTorch's learner of another network."""
    if workload.network == "perceptron":
        inputs, *hidden, classes = workload.widths
        return MLP(inputs, classes, tuple(hidden), compiled=compiled)
    from benchmarks.peers.torch_model import network
    from cafe.learn.torch import TorchLearner

    return TorchLearner(lambda: network(workload))
