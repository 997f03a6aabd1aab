"""A hand-written NumPy reference for exactly these workloads.

One step: one weighted forward and backward pass over all batches, split over two threads. Several
steps: one client after another, each with its own parameters, split over two threads. There is no
ledger, no policy and no check.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.workloads import RATE, Workload

THREADS = 2
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Params = list[tuple[Floats, Floats]]


class Fused:
    """The reference as a contestant."""

    name = "hand-fused NumPy"
    networks: frozenset[str] | None = frozenset({"perceptron"})

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for this many rounds."""
        x, y = workload.data()
        rng = np.random.default_rng(1)
        params: Params = [
            (
                rng.normal(0, inputs**-0.5, (inputs, outputs)).astype(np.float32),
                np.zeros(outputs, np.float32),
            )
            for inputs, outputs in pairwise(workload.widths)
        ]
        with ThreadPoolExecutor(THREADS) as pool, threadpool_limits(1, user_api="blas"):
            began = perf_counter()
            for _ in range(rounds):
                clients = np.flatnonzero(rng.exponential(size=workload.clients) < workload.deadline)
                if not len(clients):
                    continue
                shape = (len(clients), workload.steps, workload.batch)
                rows = rng.integers(workload.held, size=shape)
                rows += clients[:, None, None] * workload.held
                change = one_step if workload.steps == 1 else several_steps
                share = RATE / len(clients)
                parts = np.array_split(rows, THREADS)
                for move in list(pool.map(partial(change, params, x, y, share), parts)):
                    add(params, move)
            return perf_counter() - began


def one_step(params: Params, x: Floats, y: Rows, share: float, rows: Rows) -> Params:
    """The sum of these clients' steps, in one pass over all their batches."""
    flat = rows.ravel()
    return gradient(params, x[flat], y[flat], -share / rows.shape[2])


def several_steps(params: Params, x: Floats, y: Rows, share: float, rows: Rows) -> Params:
    """The sum of these clients' updates after several steps, one client after another."""
    total = [(np.zeros_like(w), np.zeros_like(b)) for w, b in params]
    for client in rows:
        own = [(w.copy(), b.copy()) for w, b in params]
        for batch in client:
            add(own, gradient(own, x[batch], y[batch], -RATE / len(batch)))
        for (into_w, into_b), (w, b), (old_w, old_b) in zip(total, own, params, strict=True):
            w -= old_w
            w *= share / RATE
            into_w += w
            into_b += (b - old_b) * np.float32(share / RATE)
    return total


def gradient(params: Params, x: Floats, y: Rows, weight: float) -> Params:
    """The gradient of ``weight`` times the summed cross-entropy."""
    inputs = [x]
    for w, b in params[:-1]:
        hidden = inputs[-1] @ w
        hidden += b
        inputs.append(np.maximum(hidden, 0, out=hidden))
    w, b = params[-1]
    back = inputs[-1] @ w
    back += b
    back -= back.max(axis=1, keepdims=True)
    np.exp(back, out=back)
    back /= back.sum(axis=1, keepdims=True)
    back[np.arange(len(y)), y] -= 1
    back *= np.float32(weight)
    found: Params = []
    for layer in range(len(params) - 1, -1, -1):
        found.append((inputs[layer].T @ back, back.sum(axis=0)))
        if layer:
            back = back @ params[layer][0].T
            back *= inputs[layer] > 0
    return found[::-1]


def add(params: Params, moves: Sequence[tuple[Floats, Floats]]) -> None:
    """Update the parameters in place."""
    for (w, b), (move_w, move_b) in zip(params, moves, strict=True):
        w += move_w
        b += move_b
