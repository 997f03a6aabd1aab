"""Checks that every policy must pass, and a wire for tests."""

from cafe.testing.check import check_policy
from cafe.testing.client_training import in_two, trains
from cafe.testing.comparing import CheckFailed
from cafe.testing.virtual_wire import WAYS, VirtualWire, drift

__all__ = ["WAYS", "CheckFailed", "VirtualWire", "check_policy", "drift", "in_two", "trains"]
