"""The model and the examples: softmax regression on handwritten digits, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cafe.data import load_digits

Model = dict[str, NDArray[np.float32]]
Examples = tuple[NDArray[np.float32], NDArray[np.int64]]

RATE = np.float32(0.5)
FOR_TESTING = 297  # of the 1,797 examples; no client trains on them


def first_model() -> Model:
    """The model before any training."""
    return {"weight": np.zeros((64, 10), np.float32), "bias": np.zeros(10, np.float32)}


def held_by(partition: int, partitions: int) -> Examples:
    """The training examples of one client."""
    x, y = _shuffled()
    return x[FOR_TESTING + partition :: partitions], y[FOR_TESTING + partition :: partitions]


def losses_and_gradient(
    model: Model, x: NDArray[np.float32], y: NDArray[np.int64]
) -> tuple[NDArray[np.float32], Model]:
    """The loss on each example, and the gradient of their mean."""
    error = _shares(x @ model["weight"] + model["bias"])
    losses = -np.log(error[np.arange(len(y)), y] + 1e-9)
    error[np.arange(len(y)), y] -= 1
    return losses, {"weight": x.T @ error / len(y), "bias": error.mean(axis=0)}


def evaluate(model: Model) -> tuple[float, float]:
    """The loss and the accuracy on the test examples."""
    x, y = _shuffled()
    x, y = x[:FOR_TESTING], y[:FOR_TESTING]
    losses, _ = losses_and_gradient(model, x, y)
    right = (x @ model["weight"] + model["bias"]).argmax(axis=1) == y
    return float(losses.mean()), float(right.mean())


def _shuffled() -> Examples:
    """All examples in the same random order on every machine; pixels are from 0 to 1."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits))
    return digits.x[order], digits.y[order]


def _shares(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)
