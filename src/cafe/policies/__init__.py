"""One recipe a file; the file's name is the policy's name."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from cafe.policies.agu import agu
from cafe.policies.awu import awu
from cafe.policies.fedavg import fedavg
from cafe.policies.mcu import mcu
from cafe.rounds.policy import Policy

__all__ = ["agu", "awu", "fedavg", "mcu", "recipes"]


def recipes() -> dict[str, Callable[..., Policy]]:
    """Every recipe found, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: getattr(import_module(f"{__name__}.{name}"), name) for name in names}
