"""TOML and CSV files to objects and back: the only place where a string becomes an object.

A federation in TOML is alike clients, groups of them, or a preset::

    [federation]                                [[federation.group]]
    clients = 100                               clients = 40
    rate = 1.0                                  latency = { family = "weibull", shape = 0.8, scale = 2.0 }
    availability = 0.9                          [[federation.group]]
    examples = 600                              preset = "phones"

In CSV it has one row per client: a column ``rate``, or ``family`` and the families' parameters; if
wanted also ``client`` (a name), ``availability`` and ``examples``. Both forms take their names from
the latency classes: a family is a class, its parameters are the class's fields.
"""

from __future__ import annotations

import csv
import inspect
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from cafe import latency as latencies
from cafe.errors import FileError, InputError, did_you_mean
from cafe.federation import Federation, Indices
from cafe.latency import Constant, Exponential, Latency, Various
from cafe.latency.base import Family, Floats
from cafe.phones import phones

Table = dict[str, Any]
Shape = dict[str, tuple[Any, Any]]  # a table's keys: the type of each value, and its default

REQUIRED = ...  # as pydantic writes it

# What a table of TOML holds for a field of a latency class, by the field's annotation.
_FIELD_TYPES: dict[str, Any] = {
    "Parameter": float,
    "ArrayLike": list[float],
    "Sequence[float]": list[float],
    "Sequence[Latency]": list[Table],
}

# How a message names a type, and the example it gives.
_WORDS: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "100, without quotes"),
    float: ("a number", "1.0, without quotes"),
    str: ("text", '"exponential", in quotes'),
    list[float]: ("a list of numbers", "[1.0, 2.5]"),
    list[Table]: ("a list of tables", '[{ family = "constant", value = 1.0 }]'),
    Table: ("a table", '{ family = "exponential", rate = 1.0 }'),
}

_CHUNK = 50_000  # rows of a CSV file held as text at a time

_PRESETS: dict[str, Callable[..., Federation]] = {"phones": phones}


@dataclass(frozen=True)
class _Place:
    """A table in a file: where a message says that something is wrong."""

    where: str | Path
    key: str = ""

    def inside(self, key: str) -> _Place:
        return _Place(self.where, self.named(key))

    def named(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key

    def error(self, message: str) -> FileError:
        return FileError(self.where, message)


def load_federation(path: str | Path) -> Federation:
    """The federation described by a ``.toml`` or ``.csv`` file."""
    path = Path(path)
    loaders = {".toml": _load_toml, ".csv": _load_csv}
    if path.suffix.lower() not in loaders:
        raise FileError(
            path,
            f"the name must end in .toml or .csv, so that the format is known. Got "
            f"'{path.suffix or path.name}': rename the file.",
        )
    try:
        return loaders[path.suffix.lower()](path)
    except OSError as error:
        raise _unreachable(path, error) from None
    except UnicodeDecodeError as error:
        raise FileError(
            path,
            f"the file must be UTF-8 text. Got byte 0x{error.object[error.start]:02x} at position "
            f"{error.start}: save it as UTF-8.",
        ) from None


def federation_from_table(table: Table, where: str | Path = "scenario") -> Federation:
    """The federation described by the table ``[federation]``; ``where`` begins its messages."""
    place = _Place(where, "federation")
    if "group" not in table:
        return _members(table, place)
    for key in table:
        if key in {"preset", *_MEMBERS}:
            raise place.error(
                f"{place.named(key)} cannot stand beside {place.named('group')}, which describes "
                "all clients. Move it into a group, or take the groups out."
            )
    groups = _validated({"group": (list[Table], REQUIRED)}, table, place)["group"]
    if not groups:
        raise place.error("federation.group must hold at least one group. Got none: add one.")
    parts = [_members(group, place.inside(f"group {n}")) for n, group in enumerate(groups, 1)]
    with _explained(place):
        return Federation.join(*parts)


def latency_from_table(table: Table, where: str | Path = "latency") -> Latency:
    """The latency described by ``{ family = ..., <its parameters> }``."""
    return _latency(table, _Place(where, "latency"))
