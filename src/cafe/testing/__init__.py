"""Checks that every policy must pass, and a wire with simulated clients for tests."""

from cafe.testing.check import check_policy
from cafe.testing.client_training import engine_trainer, split_in_two
from cafe.testing.comparison import CheckFailed
from cafe.testing.virtual_wire import WAYS, VirtualWire, random_step

__all__ = [
    "WAYS",
    "CheckFailed",
    "VirtualWire",
    "check_policy",
    "engine_trainer",
    "random_step",
    "split_in_two",
]
