"""Modules and losses of PyTorch, and a plain loop with its own SGD to compare with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cafe.data.examples import Examples
from cafe.learn.local_steps import LocalSteps
from cafe.learn.torch import TorchLearner

PER_CLASS = nn.CrossEntropyLoss(reduction="none")


Loss = Callable[[Tensor, Tensor], Tensor]


def squares(output: Tensor, target: Tensor) -> Tensor:
    return (output[:, 0] - target).square()


class Mlp(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 5))


class Cnn(nn.Sequential):
    def __init__(self) -> None:
        convolve, norm = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)
        super().__init__(convolve, norm, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.append(nn.Linear(8, 5))


class Regression(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 1))


class Tied(nn.Module):
    """One weight used twice, one layer that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed = nn.Linear(12, 12).requires_grad_(False)
        self.inner, self.again = nn.Linear(12, 12, bias=False), nn.Linear(12, 12)
        self.again.weight = self.inner.weight
        self.head = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.again(torch.tanh(self.inner(self.fixed(x)))))
        return out


class OldFunction(torch.autograd.Function):
    """Written before torch.func: it can be run and differentiated, but not stacked."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope: Tensor = 2 * x * grad
        return slope


old_square: Callable[[Tensor], Tensor] = OldFunction.apply


class NotStackable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(12, 6), nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(old_square(self.first(x)))
        return out


class Attention(nn.Module):
    """Partly stackable: PyTorch warns that it will be slow."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.last = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.mix(x, x, x, need_weights=False)[0].mean(1))
        return out


class Case(NamedTuple):
    make: Callable[[], nn.Module]
    loss: Loss = PER_CLASS
    shape: tuple[int, ...] | None = None
    l2: float = 0.0
    classes: bool = True

    def learner(self, clients: str | None = None, threads: int | None = None) -> TorchLearner:
        return TorchLearner(
            self.make,
            self.loss,
            l2=self.l2,
            shape=self.shape,
            clients=clients,
            threads=threads,
        )

    def data(self) -> Examples:
        rng = np.random.default_rng(7)
        y = rng.integers(5, size=40) if self.classes else rng.normal(size=40)
        return Examples(rng.normal(size=(40, 12)).astype(np.float32), y)


CASES = {
    "mlp": Case(Mlp),
    "mlp with l2": Case(Mlp, l2=0.1),
    "cnn": Case(Cnn, shape=(1, 3, 4), l2=0.01),
    "values": Case(Regression, squares, classes=False),
    "tied and fixed": Case(Tied),
    "old function": Case(NotStackable, l2=0.1),
    "attention": Case(Attention, shape=(3, 4)),
}


every_way = pytest.mark.parametrize("clients", ["side by side", "stacked"])
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def ragged_steps(steps: int = 3, clients: int = 6) -> LocalSteps:
    """Batches of 1 to 4 examples, each with its own weight, and clients that stop early."""
    rng = np.random.default_rng(3)
    rows = rng.integers(40, size=(clients, steps, 4))
    weight = rng.uniform(0.1, 0.4, size=rows.shape).astype(np.float32)
    weight[np.arange(4) > rng.integers(4, size=(clients, steps, 1))] = 0
    rate = rng.uniform(0.05, 0.3, size=(clients, steps)).astype(np.float32)
    if steps > 1:
        rate[1, 1:], rate[4] = 0, 0
    return LocalSteps(rows, weight, rate)


def coefficients(clients: int = 6) -> np.ndarray[Any, np.dtype[np.float32]]:
    values = np.random.default_rng(5).uniform(-0.5, 1.0, size=clients).astype(np.float32)
    values[2 % clients] = 0
    return values


def module_of(learner: TorchLearner, model: Tensor) -> nn.Module:
    """A new module with the model's parameters."""
    module = copy.deepcopy(learner._module)
    trained = [p for p in module.parameters() if p.requires_grad]
    nn.utils.vector_to_parameters(model.clone(), trained)
    return module


def vector_of(module: nn.Module) -> Tensor:
    trained = [p for p in module.parameters() if p.requires_grad]
    return nn.utils.parameters_to_vector(trained).detach()


def plain_updates(case: Case, learner: TorchLearner, model: Tensor, local: LocalSteps) -> Tensor:
    data = case.data()
    x, y = torch.from_numpy(data.x).reshape(40, *(case.shape or (12,))), torch.from_numpy(data.y)
    moved = []
    for rows, weight, rate in zip(local.rows, local.weight, local.rate, strict=True):
        module = module_of(learner, model)
        for step in np.flatnonzero(rate):
            real = weight[step] > 0
            here, each = torch.from_numpy(rows[step][real]), torch.from_numpy(weight[step][real])
            decay = case.l2 * float(each.sum())
            trained = [p for p in module.parameters() if p.requires_grad]
            sgd = torch.optim.SGD(trained, lr=float(rate[step]), weight_decay=decay)
            sgd.zero_grad()
            torch.autograd.backward((each * case.loss(module(x[here]), y[here])).sum())
            sgd.step()
        moved.append(vector_of(module) - model)
    return torch.stack(moved)


def close(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)
