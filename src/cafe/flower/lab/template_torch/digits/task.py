"""The model and the examples: a small network on handwritten digits, in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cafe.data import load_digits

Model = dict[str, NDArray[Any]]
Examples = tuple[Tensor, Tensor]

RATE = 0.2
FOR_TESTING = 297  # of the 1,797 examples; no client trains on them


def network() -> nn.Module:
    """The untrained network."""
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def first_model() -> Model:
    """The model before any training."""
    torch.manual_seed(0)
    return arrays_of(network())


def arrays_of(net: nn.Module) -> Model:
    """A network's parameters by name."""
    return {name: tensor.numpy() for name, tensor in net.state_dict().items()}


def with_arrays(model: Model) -> nn.Module:
    """A network with these parameters."""
    net = network()
    net.load_state_dict({name: torch.from_numpy(array) for name, array in model.items()})
    return net


def held_by(partition: int, partitions: int) -> Examples:
    """The training examples of one client."""
    x, y = _shuffled()
    return x[FOR_TESTING + partition :: partitions], y[FOR_TESTING + partition :: partitions]


def evaluate(model: Model) -> tuple[float, float]:
    """The loss and the accuracy on the test examples."""
    x, y = _shuffled()
    x, y = x[:FOR_TESTING], y[:FOR_TESTING]
    with torch.no_grad():
        scores = with_arrays(model)(x)
    loss = nn.functional.cross_entropy(scores, y)
    return float(loss), float((scores.argmax(dim=1) == y).float().mean())


def _shuffled() -> Examples:
    """All examples in the same random order on every machine; pixels are from 0 to 1."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits))
    return torch.from_numpy(digits.x[order]), torch.from_numpy(digits.y[order])
