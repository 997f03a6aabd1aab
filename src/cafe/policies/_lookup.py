"""Recipes by name: shipped ones, entry points of installed packages, and user functions.

Controllers are always user functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cafe.controllers import Controller, is_controller
from cafe.errors import InputError, did_you_mean
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy
from cafe.user_code.user_functions import FunctionKind, find_function, folders_to_search

GROUP = "cafe.policies"
_EXAMPLE = "my_policies:buffered"

Recipe = Callable[..., Policy | Hierarchy]


_POLICY = FunctionKind(
    "policy",
    _EXAMPLE,
    "a Policy or a Hierarchy",
    lambda made: isinstance(made, Policy | Hierarchy),
    "End it with `return Policy(...)`",
)
_CONTROLLER = FunctionKind(
    "controller",
    "my_policies:adaptive",
    "a controller, a function of the ledger and of the response times that returns a Policy",
    is_controller,
    "Return such a function, or a frozen dataclass with `__call__`",
)


@dataclass(frozen=True)
class Registered:
    """A recipe that an installed package registers under the entry-point group ``cafe.policies``.

    Attributes:
        name: the name to use. It is ``entry``, or ``target`` if a shipped recipe or another
            package has that name too.
        entry: the name of the entry point.
        package: the package that registers it.
        target: the function, as ``package.module:function``.
    """

    name: str
    entry: str
    package: str
    target: str


def registered(shipped: Mapping[str, Recipe]) -> list[Registered]:
    """All entries of the group, sorted by name; see :func:`cafe.policies.registered`."""
    entries = metadata.entry_points(group=GROUP)
    names = [entry.name for entry in entries]
    found = []
    for entry in entries:
        target = f"{entry.module}:{entry.attr}" if entry.attr else entry.module
        clashes = entry.name in shipped or names.count(entry.name) > 1
        package = entry.dist.name if entry.dist is not None else "an unknown package"
        found.append(Registered(target if clashes else entry.name, entry.name, package, target))
    return sorted(found, key=lambda entry: (entry.name, entry.package))


def resolve(name: str, shipped: Mapping[str, Recipe], folder: str | Path | None) -> Recipe:
    """The recipe with a given name; see :func:`cafe.policies.resolve`."""
    if not isinstance(name, str):
        raise InputError(
            f"The name of a policy must be a string. Got {name!r}. Write a name such as 'mcu' or "
            f"'{_EXAMPLE}'."
        )
    folders = folders_to_search(folder)
    if name in shipped:
        return shipped[name]
    if ":" in name:
        return find_function(_POLICY, name, name, folders)
    entries = registered(shipped)
    found = [entry for entry in entries if entry.entry == name]
    if len(found) > 1:
        ways = ", ".join(f"'{entry.target}' of {entry.package}" for entry in found)
        raise InputError(
            f"Several installed packages register a policy '{name}'. Name the function instead: "
            f"{ways}."
        )
    if found:
        return find_function(
            _POLICY, found[0].target, f"{name}, of the package {found[0].package},", []
        )
    known = {*shipped, *(entry.name for entry in entries)}
    raise InputError(
        f"There is no policy '{name}'. {did_you_mean(name, known)} Name your own function with its "
        f"module, such as '{_EXAMPLE}'."
    )


def resolve_controller(name: str, folder: str | Path | None) -> Callable[..., Controller]:
    """The function that makes a controller; see :func:`cafe.policies.resolve_controller`."""
    if not isinstance(name, str):
        raise InputError(
            f"The name of a controller must be a string. Got {name!r}. Write a name such as "
            f"'{_CONTROLLER.example}'."
        )
    return find_function(_CONTROLLER, name, name, folders_to_search(folder))
