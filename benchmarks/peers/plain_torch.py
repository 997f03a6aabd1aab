"""No framework: one client after another, with torch's defaults."""
# mypy: ignore-errors

from __future__ import annotations

from time import perf_counter

import torch
from torch.nn.functional import cross_entropy

from benchmarks.peers.serve import Play, serve
from benchmarks.peers.torch_model import network, tensors
from benchmarks.workloads import RATE, Workload


def prepare(workload: Workload) -> Play:
    held = tensors(workload)
    model = network(workload)
    params = list(model.parameters())
    optimiser = torch.optim.SGD(params, lr=RATE)

    def play(rounds: int) -> float:
        began = perf_counter()
        for _ in range(rounds):
            start = [p.detach().clone() for p in params]
            total = [torch.zeros_like(p) for p in params]
            for client in torch.randperm(workload.clients)[: workload.cohort].tolist():
                x, y = held[client]
                for _ in range(workload.steps):
                    rows = torch.randint(len(x), (workload.batch,))
                    optimiser.zero_grad()
                    cross_entropy(model(x[rows]), y[rows]).backward()
                    optimiser.step()
                with torch.no_grad():
                    torch._foreach_add_(total, torch._foreach_sub(params, start))
                    torch._foreach_copy_(params, start)
            with torch.no_grad():
                torch._foreach_add_(params, total, alpha=1 / workload.cohort)
        return perf_counter() - began

    return play


if __name__ == "__main__":
    serve(prepare)
