"""Tables that describe a function call: their keys are the parameters of the function."""

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
NONE = "none"  # TOML has no None; this text stands for it where None is not the default


def shape_of(called: Callable[..., Any], without: Collection[str] = ()) -> Shape:
    """The TOML types and defaults of a function's parameters, without those that TOML cannot give.

    Args:
        called: the function or class.
        without: parameters to leave out.
    """
    types = _types(called)
    found: Shape = {}
    for name, parameter in inspect.signature(called).parameters.items():
        if name in without or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name not in types:
            raise InputError(
                f"The parameter '{name}' of {_title(called)} must have a type annotation, such as "
                f"`{name}: float`: a scenario file is checked against it."
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
    """The shape of a table that names the function under ``key`` and gives its arguments.

    Raises:
        InputError: if no table can describe the call: a parameter has no type annotation, or it has
            no default and a type that TOML does not have, or it is named ``key``.
    """
    found = shape_of(called)
    for name, parameter in inspect.signature(called).parameters.items():
        if name == key:
            raise InputError(
                f"The parameter '{name}' of {_title(called)} cannot be given in a scenario file, "
                f"where {key} is the name of the function: rename the parameter."
            )
        by_key = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        needed = parameter.default is inspect.Parameter.empty and not many
        if needed and not (by_key and name in found):
            raise InputError(
                f"The parameter '{name}' of {_title(called)} cannot be given in a scenario file, "
                "which can contain numbers, texts, booleans and lists of them, each with a key: "
                "give the parameter a default, or another type."
            )
    return found


def read_arguments(
    shape: Shape, table: Table, location: TableLocation, others: Collection[str] = ()
) -> Table:
    """The values of a table as keyword arguments; the text "none" becomes None where allowed."""
    optional = {key for key, (kind, _) in shape.items() if Literal[NONE] in get_args(kind)}
    read = validate_table(shape, table, location, others)
    return {k: None if v == NONE and k in optional else v for k, v in read.items()}


def call_named(
    known: Mapping[str, Callable[..., T]], table: Table, location: TableLocation, key: str = "name"
) -> T:
    """Call the function that the table names under ``key`` with the table's other values."""
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
    except Exception as error:  # evaluating an annotation can raise anything
        raise InputError(
            f"The type annotations of {_title(called)} cannot be evaluated, which a scenario file "
            f"needs. {type(error).__name__}: {error}. Import their names at the top of the module, "
            "not only under TYPE_CHECKING."
        ) from None


def _title(called: Callable[..., Any]) -> str:
    return f"{getattr(called, '__qualname__', None) or type(called).__qualname__}"


def _readable(kind: Any) -> Any:
    """The TOML type for a parameter's type; None if there is none, as for functions."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        parts = [found for part in get_args(kind) if (found := _readable(part)) is not None]
        return Union[tuple(parts)] if parts else None  # noqa: UP007
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        inner = _readable(get_args(kind)[0])
        return None if inner is None else list[inner]  # type: ignore[valid-type]
    return kind if kind in (bool, int, float, str) or origin is Literal else None
