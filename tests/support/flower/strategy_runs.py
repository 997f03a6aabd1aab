"""Runs of :class:`cafe.flower.Strategy` with stock ClientApps on a grid in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Message
from flwr.serverapp.strategy import Result

from tests.support.flower.stock_grid import Delay

# The model of all tests: learned arrays of two types, and a counter.
START: dict[str, Any] = {
    "w": np.array([[1.0, -2.0], [0.5, 4.0]], np.float32),
    "b": np.array([0.25, 3.0]),
    "batches": np.array(7),
}


def train(model: dict[str, Any], config: Any, context: Any) -> Any:
    """Node k adds k to all numbers, 2 k to the counter, and has 10 k examples."""
    k = context.node_id
    moved = {name: array + np.asarray(k, array.dtype) for name, array in model.items()}
    moved["batches"] = model["batches"] + 2 * k
    return moved, {"num-examples": 10 * k, "train_loss": float(k), "by_class": [1.0 * k, 2.0 * k]}


def evaluate(model: dict[str, Any], config: Any, context: Any) -> dict[str, Any]:
    k = context.node_id
    return {"num-examples": k, "eval_loss": float(model["b"][0]) + k, "eval_acc": 1 / (k + 1)}


Run = Callable[..., Result]


def values(result: Result) -> dict[str, Any]:
    return {name: array.numpy() for name, array in result.arrays.items()}


def read_config(message: Message) -> dict[str, Any]:
    return dict(message.content.config_records["config"])


def late(node: int) -> Delay:
    """One node is always late."""
    return lambda other, message: 60.0 if other == node else 1.0
