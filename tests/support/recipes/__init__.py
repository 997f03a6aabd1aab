"""What the contracts need of each shipped recipe: a module with the recipe's name.

Its ``VARIANTS`` are policies that the contract is tested on. Its ``CALL`` says which values of the
parameters are wrong.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType


def modules() -> dict[str, ModuleType]:
    """The modules, by the name of their recipe."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}") for name in names}
