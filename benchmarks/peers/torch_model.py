"""The networks in torch, for all contestants that use it."""
# mypy: ignore-errors

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from benchmarks.workloads import CHANNELS, EMBEDDING, KERNEL, UNITS, Workload


def network(workload: Workload) -> nn.Module:
    """The network of a workload; its inputs are flat rows."""
    makers = {"perceptron": perceptron, "cnn": convolutions, "lstm": NextLetter}
    return makers[workload.network](workload)


def convolutions(workload: Workload) -> nn.Sequential:
    """Two convolutions with ReLU and pooling, and a linear layer."""
    first, second = CHANNELS
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, first, KERNEL, padding=KERNEL // 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(first, second, KERNEL, padding=KERNEL // 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(7 * 7 * second, workload.widths[-1]),
    )


class NextLetter(nn.Module):
    """An embedding of letters, an LSTM, and a linear layer on its last output."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        letters = workload.widths[-1]
        self.embedding = nn.Embedding(letters, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, UNITS, batch_first=True)
        self.last = nn.Linear(UNITS, letters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A value for each letter that may come next."""
        found, _ = self.lstm(self.embedding(x.long()))
        return self.last(found[:, -1])


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
