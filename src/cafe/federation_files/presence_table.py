"""The table ``[federation.presence]``: when clients are present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cafe.errors import positive
from cafe.presence import Battery, DayNight, OnOff, Presence, read_trace
from cafe.toml_tables.reading import Place, chosen, validated
from cafe.toml_tables.shapes import REQUIRED, Shape, Table
from cafe.toml_tables.signatures import call_named

_KINDS: dict[str, Callable[..., Any]] = {
    "battery": Battery,
    "day-night": DayNight,
    "on-off": OnOff,
    "trace": read_trace,
}
_TRACE: Shape = {"kind": (str, REQUIRED), "file": (str, REQUIRED), "repeat": (float, None)}


def presence_from_table(table: Table, place: Place) -> Presence:
    """The presence described by ``{ kind = ..., ... }``; a trace's file stands beside the table's.

    A file's own faults are told with its name and line.
    """
    if chosen("kind", _KINDS, table, place) is not read_trace:
        made: Presence = call_named(_KINDS, table, place, "kind")
        return made
    given = validated(_TRACE, table, place)
    with place.explaining():
        repeat = positive("repeat", given["repeat"]) if "repeat" in given else None
    return read_trace(Path(place.where).parent / given["file"], repeat)
