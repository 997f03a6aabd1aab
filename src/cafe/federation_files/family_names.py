"""The names of latency families in files, derived from the latency classes and their fields."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from typing import Any

from cafe import latency as latencies
from cafe.errors import check_type
from cafe.latency import Latency, Various
from cafe.latency.base import Family
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

# The TOML type of a field of a latency class, by the field's annotation. A field with another
# annotation is not a parameter.
_FIELD_TYPES: dict[str, Any] = {
    "Parameter": float,
    "ArrayLike": list[float],
    "Sequence[float]": list[float],
    "Sequence[Latency]": list[Table],
}


def family_name(family: type[Latency]) -> str:
    """The name of a latency class in files, such as ``shifted-exponential``.

    Example:
        >>> from cafe import ShiftedExponential
        >>> from cafe.federation_files import family_name
        >>> family_name(ShiftedExponential)
        'shifted-exponential'
    """
    check_type("family", family, type, "a class of latencies, such as cafe.Exponential")
    words = re.findall("[A-Z][a-z]+", family.__name__)
    return "-".join(words).lower().replace("log-", "log")  # lognormal is one word


def families_by_name() -> dict[str, type[Latency]]:
    """All latency classes by name, except Various, which the groups of a federation create."""
    found = (getattr(latencies, name) for name in latencies.__all__)
    return {
        family_name(c): c
        for c in found
        if inspect.isclass(c)
        and issubclass(c, Latency)
        and not inspect.isabstract(c)
        and c is not Various
    }


def parameters_of(family: type[Any]) -> Shape:
    """The parameters of a family: the TOML type and the default of each."""
    return {
        field.name: (
            _FIELD_TYPES[str(field.type)],
            REQUIRED if field.default is MISSING else field.default,
        )
        for field in fields(family)
        if field.type in _FIELD_TYPES
    }


def csv_families() -> dict[str, type[Family]]:
    """The families whose parameters are single numbers, so that they fit in a CSV row."""
    return {name: c for name, c in families_by_name().items() if issubclass(c, Family)}
