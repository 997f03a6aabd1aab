"""The perceptron in torch, for all peers that use it."""
# mypy: ignore-errors

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from benchmarks.workloads import Workload


def perceptron(workload: Workload) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers = []
    for inputs, outputs in pairwise(workload.widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def tensors(workload: Workload) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The examples of each client, as tensors."""
    x, y = map(torch.from_numpy, workload.data())
    parts = (workload.part(client) for client in range(workload.clients))
    return [(x[part], y[part]) for part in parts]
