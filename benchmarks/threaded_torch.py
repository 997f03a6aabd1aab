"""A hand-written PyTorch reference for the networks: two threads, each with one of PyTorch's own.

One step: one weighted loss over all batches, in pieces of 128 examples that stay in the processor's
cache. Several steps: one client after another in each thread, with the thread's own module. Images
have their channels last. There is no ledger, no policy and no check.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.peers.torch_model import network
from benchmarks.workloads import RATE, Workload

THREADS = 2
PIECE = 128
Workspace = tuple[nn.Module, list[Tensor]]  # a module and its parameters, which one thread uses


class ThreadedTorch:
    """The reference as a contestant."""

    name = "hand-written torch"
    networks: frozenset[str] | None = frozenset({"cnn", "lstm"})

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for this many rounds."""
        x, y = map(torch.from_numpy, workload.data())
        workspaces = _workspaces(workload)
        model = [p.detach().clone() for p in workspaces[0][1]]
        rng = np.random.default_rng(1)
        change = one_step if workload.steps == 1 else several_steps
        before = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(
                THREADS, initializer=torch.set_num_threads, initargs=(1,)
            ) as pool:
                began = perf_counter()
                for _ in range(rounds):
                    reporting = rng.exponential(size=workload.clients) < workload.deadline
                    clients = np.flatnonzero(reporting)
                    if not len(clients):
                        continue
                    shape = (len(clients), workload.steps, workload.batch)
                    rows = rng.integers(workload.held, size=shape)
                    rows += clients[:, None, None] * workload.held
                    share = RATE / len(clients)
                    for move in change(
                        pool, workspaces, model, x, y, share, torch.from_numpy(rows)
                    ):
                        torch._foreach_add_(model, move)
                return perf_counter() - began
        finally:
            torch.set_num_threads(before)


def one_step(
    pool: ThreadPoolExecutor,
    workspaces: list[Workspace],
    model: list[Tensor],
    x: Tensor,
    y: Tensor,
    share: float,
    rows: Tensor,
) -> Iterable[list[Tensor]]:
    """The sum of these clients' steps, in pieces of all their batches: a part per thread."""
    pieces = iter(torch.split(rows.ravel(), PIECE))
    scale = -share / rows.shape[2]

    def work(workspace: Workspace) -> list[Tensor]:
        module, parameters = workspace
        _set(parameters, model)
        for p in parameters:
            p.grad = None
        for piece in pieces:  # each thread takes the next one
            loss = scale * cross_entropy(module(x[piece]), y[piece], reduction="sum")
            torch.autograd.backward(loss)
        return [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]

    return pool.map(work, workspaces)


def several_steps(
    pool: ThreadPoolExecutor,
    workspaces: list[Workspace],
    model: list[Tensor],
    x: Tensor,
    y: Tensor,
    share: float,
    rows: Tensor,
) -> Iterable[list[Tensor]]:
    """The sum of these clients' updates after several steps: a part per thread."""
    clients = iter(rows)

    def work(workspace: Workspace) -> list[Tensor]:
        module, parameters = workspace
        total = [torch.zeros_like(p) for p in model]
        for batches in clients:  # each thread takes the next one
            _set(parameters, model)
            for batch in batches:
                loss = cross_entropy(module(x[batch]), y[batch])
                slopes = torch.autograd.grad(loss, parameters)
                with torch.no_grad():
                    torch._foreach_add_(parameters, slopes, alpha=-RATE)
            with torch.no_grad():
                moved = torch._foreach_sub(parameters, model)
                torch._foreach_add_(total, moved, alpha=share / RATE)
        return total

    return pool.map(work, workspaces)


def _set(parameters: list[Tensor], model: list[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(parameters, model)


@cache
def _workspaces(workload: Workload) -> list[Workspace]:
    module = network(workload)
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    modules = [copy.deepcopy(module) for _ in range(THREADS)]
    return [(each, list(each.parameters())) for each in modules]
