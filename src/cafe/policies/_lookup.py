"""Recipes by name: shipped ones, entry points of installed packages, and user functions.

Controllers are always user functions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import Any

from cafe.controllers import Controller, is_controller
from cafe.errors import CafeError, InputError, check_path, did_you_mean
from cafe.policies._importing import describe_error, import_from
from cafe.rounds.policy import Policy

GROUP = "cafe.policies"
_EXAMPLE = "my_policies:fedbuff"
_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

Recipe = Callable[..., Policy]


@dataclass(frozen=True)
class _Kind:
    """What a user function must make, and how errors describe it."""

    noun: str
    example: str
    made: str
    check: Callable[[Any], bool]
    ending: str


_POLICY = _Kind(
    "policy",
    _EXAMPLE,
    "a Policy",
    lambda made: isinstance(made, Policy),
    "End it with `return Policy(...)`",
)
_CONTROLLER = _Kind(
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
    folders = _folders(folder)
    if name in shipped:
        return shipped[name]
    if ":" in name:
        return _of_module(_POLICY, name, name, folders)
    entries = registered(shipped)
    found = [entry for entry in entries if entry.entry == name]
    if len(found) > 1:
        ways = ", ".join(f"'{entry.target}' of {entry.package}" for entry in found)
        raise InputError(
            f"Several installed packages register a policy '{name}'. Name the function instead: "
            f"{ways}."
        )
    if found:
        return _of_module(
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
    return _of_module(_CONTROLLER, name, name, _folders(folder))


def _folders(folder: str | Path | None) -> list[Path]:
    return [*([] if folder is None else [check_path("folder", folder)]), Path()]


def _of_module(kind: _Kind, target: str, title: str, folders: list[Path]) -> Callable[..., Any]:
    """Import the function ``module:function``; ``title`` is its name in errors."""
    if not _TARGET.fullmatch(target) or target.partition(":")[0].endswith(".py"):
        function = kind.example.partition(":")[2]
        raise InputError(
            f"Your own {kind.noun} must be named as module:function, such as '{kind.example}' for "
            f"the function {function} in the file my_policies.py. Got '{target}'. Use dots between "
            "folders, and leave out '.py'."
        )
    module, _, path = target.partition(":")
    found: Any = import_from(module, folders)
    for part in path.split("."):
        if not hasattr(found, part):
            functions = [n for n, v in vars(found).items() if callable(v) and n[0] != "_"]
            hint = did_you_mean(part, functions) if functions else "It has no functions."
            where = module if inspect.ismodule(found) else found.__name__
            raise InputError(f"{where} has no function '{part}'. {hint}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(
            f"{title} must be a function that returns {kind.made}. Got a {type(found).__name__}. "
            f"Name the function that makes the {kind.noun}."
        )
    try:
        inspect.signature(found)
    except (TypeError, ValueError):
        raise InputError(
            f"{title} must be a Python function. Got {found!r}, whose parameters are unknown. Wrap "
            "it in a Python function."
        ) from None
    return _checked(kind, found, title)


def _checked(kind: _Kind, function: Callable[..., Any], title: str) -> Callable[..., Any]:
    """The function, wrapped so that its failures and wrong results are :class:`InputError`."""

    @wraps(function)
    def recipe(*args: Any, **given: Any) -> Any:
        try:
            made = function(*args, **given)
        except CafeError:
            raise
        except Exception as error:
            raise InputError(f"{title} has failed: {describe_error(error)}. Correct it.") from error
        if not kind.check(made):
            raise InputError(
                f"{title} must return {kind.made}. Got a {type(made).__name__}. {kind.ending}."
            )
        return made

    return recipe
