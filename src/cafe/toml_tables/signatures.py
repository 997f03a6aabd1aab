"""The keys of a table that describes a call: the parameters of what is called, and their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cafe.errors import InputError
from cafe.toml_tables.reading import TableLocation, look_up_name, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

T = TypeVar("T")
NONE = "none"  # TOML has no word for None: where it is not the default, this text stands for it


def shape_of(called: Callable[..., Any], without: Collection[str] = ()) -> Shape:
    """What TOML may hold for each parameter, but for those that only Python can give."""
    types = _types(called)
    found: Shape = {}
    for name, parameter in inspect.signature(called).parameters.items():
        if name in without or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name not in types:
            raise InputError(
                f"The parameter '{name}' of {_title(called)} must have a type, such as "
                f"`{name}: float`: a scenario file needs it to know what may be written there."
            )
        kind = _readable(types[name])
        if kind is None:
            continue
        if NoneType in get_args(types[name]) and parameter.default is not None:
            kind = Union[kind, Literal[NONE]]  # noqa: UP007
        needed = parameter.default is inspect.Parameter.empty
        found[name] = (kind, REQUIRED if needed else None)
    return found


def shape_of_call(called: Callable[..., Any], key: str = "name") -> Shape:
    """The same for what a table calls by its name under ``key``; what no table can call is refused.

    Raises:
        InputError: if a parameter has no type, can only be given in Python and has no default, or
            takes the key away.
    """
    found = shape_of(called)
    for name, parameter in inspect.signature(called).parameters.items():
        if name == key:
            raise InputError(
                f"The parameter '{name}' of {_title(called)} cannot be given in a scenario file, "
                f"where {key} says which function is called: rename it."
            )
        by_key = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        needed = parameter.default is inspect.Parameter.empty and not many
        if needed and not (by_key and name in found):
            raise InputError(
                f"The parameter '{name}' of {_title(called)} cannot be given in a scenario file, "
                "which has numbers, texts, truth values and lists of them, each with a key: give "
                "the parameter a default, or another type."
            )
    return found


def read_arguments(
    shape: Shape, table: Table, location: TableLocation, others: Collection[str] = ()
) -> Table:
    """The table's values as arguments of what has that shape."""
    optional = {key for key, (kind, _) in shape.items() if Literal[NONE] in get_args(kind)}
    read = validate_table(shape, table, location, others)
    return {k: None if v == NONE and k in optional else v for k, v in read.items()}


def call_named(
    known: Mapping[str, Callable[..., T]], table: Table, location: TableLocation, key: str = "name"
) -> T:
    """What comes of calling what the table names under ``key`` with the table's other values."""
    called = look_up_name(key, known, table, location)
    rest = {k: value for k, value in table.items() if k != key}
    with location.add_to_errors():
        shape = shape_of_call(called, key)
    given = read_arguments(shape, rest, location, (key,))
    with location.add_to_errors():
        return called(**given)


def _types(called: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters, by name."""
    function: Any = inspect.unwrap(called)
    while isinstance(function, partial):
        function = inspect.unwrap(function.func)
    if inspect.isclass(function):
        function = function.__init__
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return get_type_hints(function)
    except Exception as error:  # a type is code, which may do anything
        raise InputError(
            f"The types of {_title(called)} cannot be read, which a scenario file needs. "
            f"{type(error).__name__}: {error}. Import what they name at the top of the module, not "
            "for type checkers only."
        ) from None


def _title(called: Callable[..., Any]) -> str:
    return f"{getattr(called, '__qualname__', None) or type(called).__qualname__}"


def _readable(kind: Any) -> Any:
    """A parameter's type as TOML has it; None where TOML has nothing for it, as for functions."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        parts = [found for part in get_args(kind) if (found := _readable(part)) is not None]
        return Union[tuple(parts)] if parts else None  # noqa: UP007
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        inner = _readable(get_args(kind)[0])
        return None if inner is None else list[inner]  # type: ignore[valid-type]
    return kind if kind in (bool, int, float, str) or origin is Literal else None
