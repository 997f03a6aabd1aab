"""TOML values as the types that a shape asks for."""

from __future__ import annotations

from contextlib import suppress
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from cafe.toml_tables.shapes import Table

_ACCEPTED: dict[Any, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    str: (str,),
    Table: (dict,),
}


class MismatchError(Exception):
    """A value is not of the type that is asked for.

    Attributes:
        kind: the type that is asked for.
        value: the value.
        entry: its index, if it is an entry of a list.
    """

    def __init__(self, kind: Any, value: object, entry: int | None = None) -> None:
        super().__init__(kind, value, entry)
        self.kind, self.value, self.entry = kind, value, entry


def convert(kind: Any, value: object) -> Any:
    """The value as ``kind``: a whole number becomes a float where a float is asked for.

    Nothing else is converted: ``true`` is not a number, and ``"3"`` is a text.

    Args:
        kind: bool, int, float, str, Table, a Literal, or a list or union of these.
        value: as ``tomllib`` returns it.

    Raises:
        MismatchError: if the value is of another type.
    """
    origin: Any = get_origin(kind)
    if kind in _ACCEPTED:
        if type(value) in _ACCEPTED[kind]:
            with suppress(OverflowError):  # a whole number may be too large for a float
                return _ACCEPTED[kind][0](value)
    elif origin is Literal:
        if value in get_args(kind):
            return value
    elif origin in (Union, UnionType):
        for member in sorted(get_args(kind), key=_loses_whole_numbers):
            with suppress(MismatchError):
                return convert(member, value)
    elif isinstance(value, list):
        return [_convert_entry(get_args(kind)[0], i, entry) for i, entry in enumerate(value)]
    raise MismatchError(kind, value)


def _convert_entry(kind: Any, index: int, entry: object) -> Any:
    try:
        return convert(kind, entry)
    except MismatchError:
        raise MismatchError(kind, entry, index) from None


def _loses_whole_numbers(kind: Any) -> bool:
    """Whether 3 becomes 3.0: such members of a union are tried last."""
    return float in (kind, *get_args(kind))
