"""An MLP in float64, one example at a time: slow and simple, to compare with."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cafe.data.examples import Examples
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP

Vector = NDArray[np.float64]


def slow_loss(net: MLP, model: Vector, x: Vector, label: int) -> float:
    penalty, start, a = net.l2 / 2 * np.sum(model**2), 0, x
    for inputs, outputs in pairwise(net.widths):
        weight = model[start : start + inputs * outputs].reshape(outputs, inputs)
        start += inputs * outputs
        z = weight @ a + model[start : start + outputs]
        start += outputs
        a = np.maximum(z, 0.0)
    return float(np.log(np.sum(np.exp(z - z.max()))) + z.max() - z[label] + penalty)


def slow_gradient(net: MLP, model: Vector, x: Vector, label: int) -> Vector:
    inputs, weights, start, a = [], [], 0, x
    for before, after in pairwise(net.widths):
        weights.append(model[start : start + before * after].reshape(after, before))
        start += before * after
        inputs.append(a)
        z = weights[-1] @ a + model[start : start + after]
        start += after
        a = np.maximum(z, 0.0)
    back = np.exp(z - z.max()) / np.sum(np.exp(z - z.max()))
    back[label] -= 1.0
    parts: list[Vector] = []
    for a, weight in zip(inputs[::-1], weights[::-1], strict=True):
        parts = [np.outer(back, a).ravel(), back, *parts]
        back = (weight.T @ back) * (a > 0)
    return np.concatenate(parts) + net.l2 * model


def slow_sum(
    net: MLP, model: Vector, data: Examples, rows: NDArray[Any], weight: NDArray[Any]
) -> Vector:
    total = np.zeros(net.size)
    for row, w in zip(np.ravel(rows), np.ravel(weight), strict=True):
        x = data.x[row].ravel().astype(float)
        total += float(w) * slow_gradient(net, model, x, int(data.y[row]))
    return total


def slow_updates(net: MLP, model: Vector, data: Examples, local: LocalSteps) -> Vector:
    moves = []
    for rows, weight, rate in zip(local.rows, local.weight, local.rate, strict=True):
        own = model.copy()
        for step in range(len(rate)):
            own -= float(rate[step]) * slow_sum(net, own, data, rows[step], weight[step])
        moves.append(own - model)
    return np.array(moves)


def examples(net: MLP, rows: int = 40, seed: int = 1) -> Examples:
    rng = np.random.default_rng(seed)
    return Examples(
        rng.standard_normal((rows, net.inputs), np.float32), rng.integers(0, net.classes, rows)
    )


def a_model(net: MLP, seed: int = 2) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    noise = 0.1 * rng.standard_normal(net.size, np.float32)  # biases that are not 0
    return net.start(rng) + noise


def some_steps(
    rows: int, clients: int = 5, steps: int = 3, batch: int = 4, seed: int = 3
) -> tuple[LocalSteps, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    shape = (clients, steps, batch)
    local = LocalSteps(
        rng.integers(0, rows, shape),
        rng.uniform(0.1, 0.5, shape).astype(np.float32),
        rng.uniform(0.05, 0.2, shape[:2]).astype(np.float32),
    )
    return local, rng.standard_normal(clients).astype(np.float32)


def ragged(local: LocalSteps, seed: int = 4) -> LocalSteps:
    """The local steps with different batch sizes and numbers of steps; one client takes no step."""
    rng = np.random.default_rng(seed)
    clients, steps, batch = local.rows.shape
    weight, rate = local.weight.copy(), local.rate.copy()
    weight[np.arange(batch) >= rng.integers(1, batch + 1, (clients, steps, 1))] = 0.0
    rate[np.arange(steps) >= rng.integers(1, steps + 1, (clients, 1))] = 0.0
    rate[-1] = 0.0
    rate[0, 0] = 0.0  # client 0 skips its first step
    return LocalSteps(local.rows, weight, rate)


def near(got: NDArray[np.float32], wanted: Vector, tolerance: float = 1e-5) -> None:
    assert got.dtype == np.float32
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max() + 1e-12)


NETS = [
    MLP(6, 3, hidden=()),
    MLP(6, 3, hidden=(5,)),
    MLP(7, 4, hidden=(16, 5)),
    MLP(5, 2, hidden=(8, 7, 6), l2=0.3),
    MLP(6, 3, hidden=(), l2=0.1),
]


nets = pytest.mark.parametrize("net", NETS, ids=lambda n: f"{n.hidden} l2={n.l2}")
