"""What tests of live runs share: a model, a federation, and a run on a virtual wire."""

from __future__ import annotations

from typing import Any

import numpy as np

import cafe
from cafe.controllers import Fixed
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.live.model_layout import Arrays
from cafe.testing import WAYS, VirtualWire, random_step

__all__ = ["WAYS", "VirtualWire", "exponential", "live", "random_step", "start"]


def exponential(clients: int = 6, rate: float = 1.0) -> cafe.Federation:
    """Equal clients with exponential response times."""
    return cafe.Federation(clients, cafe.Exponential(rate))


def start() -> Arrays:
    """A model to begin with."""
    return {"weight": np.zeros((2, 3), np.float32), "bias": np.ones(2, np.float32)}


def live(wire: VirtualWire, policy: cafe.Policy, **given: Any) -> LiveRun:
    """A run under a policy, whose clients are all registered."""
    arrays = given.pop("model", None) or start()
    model = GlobalModel(arrays, given.pop("combine", None), given.pop("optimiser", None))
    run = LiveRun(wire, Fixed(policy), model, seed=wire.seed, **given)
    run.refresh_clients()
    return run
