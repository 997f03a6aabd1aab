"""One recipe a file; the file's name is the policy's name.

Policies of other packages and of one's own have names too: :func:`resolve` finds them.
:func:`resolve_controller` finds controllers of one's own.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from cafe.control import Controller
from cafe.policies import _lookup
from cafe.policies._lookup import Registered
from cafe.policies.agu import agu
from cafe.policies.awu import awu
from cafe.policies.fedavg import fedavg
from cafe.policies.mcu import mcu
from cafe.rounds.policy import Policy

__all__ = [
    "Registered",
    "agu",
    "awu",
    "fedavg",
    "mcu",
    "recipes",
    "registered",
    "resolve",
    "resolve_controller",
]


def recipes() -> dict[str, Callable[..., Policy]]:
    """Every recipe that CAFe ships, by name."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return {name: getattr(import_module(f"{__name__}.{name}"), name) for name in names}


def registered() -> list[Registered]:
    """What installed packages register under the entry-point group ``cafe.policies``, by name.

    Nothing is imported. A shipped recipe keeps its name, so that a scenario means the same whatever
    is installed: an entry of the same name is listed under its target instead, and so are entries
    of several packages that have one name.
    """
    return _lookup.registered(recipes())


def resolve(name: str, folder: str | Path | None = None) -> Callable[..., Policy]:
    """The function that makes the policies of a name.

    Args:
        name: of a shipped recipe; of an entry that an installed package registers; or
            ``package.module:function``, which is imported. Importing a module runs its code.
        folder: where modules are looked for first, then in the current folder, then where Python
            looks. A scenario's own folder, for example.

    Raises:
        InputError: if nothing has that name, or what has it cannot be imported or called. The
            function raises it too: if it fails, and if what it returns is not a Policy.
    """
    return _lookup.resolve(name, recipes(), folder)


def resolve_controller(name: str, folder: str | Path | None = None) -> Callable[..., Controller]:
    """The function, or the class, that makes the controllers of a name.

    Args:
        name: ``package.module:function``, which is imported. Importing a module runs its code.
        folder: where modules are looked for first, as for :func:`resolve`.

    Raises:
        InputError: if nothing has that name, or what has it cannot be imported or called. The
            function raises it too: if it fails, and if what it returns is not a controller.
    """
    return _lookup.resolve_controller(name, folder)
