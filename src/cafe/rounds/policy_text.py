"""The text of a policy: its name with its parameters, or with the values in its decisions."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any, cast

import numpy as np

from cafe.rounds.identity import digest, is_importable

# Six hexadecimal digits with a letter other than e, because 84e012 would be read as a number.
_WITH_A_LETTER = re.compile(r"(?=[0-9e]{0,5}[abcdf])[0-9a-f]{6}")
_LONGEST = 40  # characters; longer strings are not shown
_UNKNOWN = "?"


def describe_parameters(parameters: Mapping[str, Any]) -> dict[str, str]:
    """A recipe's parameters, formatted."""
    return {name: format_value(value) for name, value in parameters.items()}


def describe_decisions(decisions: Mapping[str, Any]) -> dict[str, str]:
    """The plain values in the decisions, formatted, and ``code``, a short digest of the decisions.

    Plain values are taken from closure variables of functions, keywords of partials, and fields of
    dataclasses that differ from their defaults. If two decisions use the same name for different
    values, the second name is prefixed with its decision.
    """
    shown: dict[str, str] = {"code": _short_digest(decisions)}
    for decision, value in decisions.items():
        for name, text in _plain_values(value).items():
            key = name if shown.get(name, text) == text else f"{decision}_{name}"
            shown[key] = text
    return {**{k: v for k, v in shown.items() if k != "code"}, "code": shown["code"]}


def format_value(value: Any) -> str:
    """Format a parameter.

    A function that can be imported is shown by its name. Any other function is shown by its name
    and six digits of its digest, so that two lambdas have different texts.

    Example:
        >>> import numpy as np
        >>> format_value(0.5), format_value(np.sqrt)
        ('0.5', 'sqrt')
    """
    name, kind = getattr(value, "__name__", None), cast("Any", type(value))
    function = isinstance(value, types.FunctionType | types.MethodType | partial)
    if function and not is_importable(value):
        return f"{name or 'partial'}#{_short_digest(value)}"
    if name is None and callable(value) and kind.__repr__ is object.__repr__:
        return f"{kind.__name__}#{_short_digest(value)}"
    return name or f"{value}"


def _short_digest(value: Any) -> str:
    """Six digits of the digest; a question mark if the value cannot be identified."""
    try:
        found = _WITH_A_LETTER.search(digest(value))
    except Exception:  # str(policy) must not raise an error
        return _UNKNOWN
    return found[0] if found else _UNKNOWN


def _plain_values(value: Any) -> dict[str, str]:
    """The plain values in a decision, by name."""
    if isinstance(value, types.FunctionType):
        names, cells = value.__code__.co_freevars, value.__closure__ or ()
        held = {n: c.cell_contents for n, c in zip(names, cells, strict=True) if _filled(c)}
        return {name: f"{inner}" for name, inner in held.items() if _is_plain(inner)}
    if isinstance(value, types.MethodType):
        return _plain_values(value.__self__)
    if isinstance(value, partial):
        given = {name: f"{inner}" for name, inner in value.keywords.items() if _is_plain(inner)}
        return _plain_values(value.func) | given
    shown: dict[str, str] = {}
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            inner = getattr(value, field.name, None)
            default = field.default if field.default is not MISSING else None
            if is_dataclass(inner):
                shown |= _plain_values(inner)
            elif _is_plain(inner) and not (type(inner) is type(default) and inner == default):
                shown[field.name] = f"{inner}"
    return shown


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _is_plain(value: Any) -> bool:
    if isinstance(value, str) and not isinstance(value, Enum):
        return len(value) <= _LONGEST and value.isprintable()
    return isinstance(value, bool | int | float | Enum | np.generic)
