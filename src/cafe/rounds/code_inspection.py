"""Inspection of code: members of a class, globals that a function reads, where a module is from."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

_INSTALLED = {"site-packages", "dist-packages"}
_GENERATED = {  # methods that dataclasses generate from the fields
    "__init__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__",
    "__setattr__", "__delattr__", "__replace__",
}  # fmt: skip


def members(owner: type, key: str, member: Any) -> Iterator[Any]:
    """The functions and values in a member of a class; properties are unwrapped."""
    if isinstance(member, property):
        yield from (part for part in (member.fget, member.fset) if part is not None)
    elif isinstance(member, staticmethod | classmethod):
        yield member.__func__
    elif isinstance(member, functools.cached_property):
        yield member.func
    elif isinstance(member, types.FunctionType):
        generated = key in _GENERATED and member.__code__.co_filename == "<string>"
        if not (is_dataclass(owner) and (generated or key == "__repr__")):
            yield member
    elif not (key.startswith(("__", "_abc_")) or inspect.isdatadescriptor(member)):
        yield member


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


@functools.lru_cache(maxsize=1024)
def read_globals(code: types.CodeType) -> frozenset[str]:
    """The names of module variables that code reads."""
    return frozenset(
        f"{step.argval}"
        for step in dis.get_instructions(code)
        if step.opname == "LOAD_NAME"
        or (step.opname.startswith("LOAD_") and "GLOBAL" in step.opname)
    )


def origin(module: str | None) -> str | None:
    """How the code of a module is identified.

    Returns:
        None for user code, which is identified by its bytecode. Other code is identified by its
        name and this text: empty for CAFe and the standard library, the package's name and version
        for installed packages.
    """
    top = (module or "").partition(".")[0]
    if top == "cafe" or (top in sys.stdlib_module_names and top != "__main__"):
        return ""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file and _INSTALLED & {*Path(file).parts}:
        version = _version(top)
        return None if version is None else f"{top} {version}"
    return None


@functools.lru_cache(maxsize=64)
def _version(package: str) -> str | None:
    """The version of an installed package; None if it is unknown."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        found = getattr(sys.modules.get(package), "__version__", None)
        return found if isinstance(found, str) else None
