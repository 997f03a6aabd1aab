"""The keys of a table that describes a call: the parameters of what is called, and their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cafe.scenario.names import REQUIRED, Shape, Table
from cafe.scenario.reading import Place, chosen, validated

T = TypeVar("T")
NONE = "none"  # TOML has no word for None: where it is not the default, this text stands for it


def shape_of(called: Callable[..., Any], without: Collection[str] = ()) -> Shape:
    """What TOML may hold for each parameter, but for those that only Python can give."""
    types = get_type_hints(called.__init__ if inspect.isclass(called) else called)
    found: Shape = {}
    for name, parameter in inspect.signature(called).parameters.items():
        kind = None if name in without else _readable(types[name])
        if kind is None:
            continue
        if NoneType in get_args(types[name]) and parameter.default is not None:
            kind = Union[kind, Literal[NONE]]  # noqa: UP007
        needed = parameter.default is inspect.Parameter.empty
        found[name] = (kind, REQUIRED if needed else None)
    return found


def arguments(shape: Shape, table: Table, place: Place, others: Collection[str] = ()) -> Table:
    """The table's values as arguments of what has that shape."""
    optional = {key for key, (kind, _) in shape.items() if Literal[NONE] in get_args(kind)}
    read = validated(shape, table, place, others)
    return {k: None if v == NONE and k in optional else v for k, v in read.items()}


def call_named(
    known: Mapping[str, Callable[..., T]], table: Table, place: Place, key: str = "name"
) -> T:
    """What comes of calling what the table names under ``key`` with the table's other values."""
    called = chosen(key, known, table, place)
    rest = {k: value for k, value in table.items() if k != key}
    given = arguments(shape_of(called), rest, place, (key,))
    with place.explaining():
        return called(**given)


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
