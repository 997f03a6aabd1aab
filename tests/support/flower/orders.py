"""Orders with vectors, sent to a list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.app import Message

from cafe.flower.grid import GridWire
from cafe.live.model_layout import Arrays, Layout
from cafe.live.wire import Order

MODEL: Arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(2)}
OFFSET: Arrays = {"w": np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)}
FROZEN: Arrays = {"w": np.arange(6).reshape(2, 3) % 2 == 0}


def make_order(number: int, **vectors: Any) -> Order:
    return Order(f"{number + 3}", number, 0, 0, 0, **vectors)


def send(*orders: Order) -> list[Message]:
    """The messages that a wire pushes for some orders."""
    pushed: list[Message] = []

    def push_messages(ready: list[Message]) -> list[str]:
        pushed.extend(ready)
        return [f"{k}" for k, _ in enumerate(ready)]

    grid: Any = SimpleNamespace(push_messages=push_messages)
    GridWire(grid, Layout.of(MODEL), "run").send(orders, MODEL)
    return pushed
