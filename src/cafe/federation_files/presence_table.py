"""The table ``[federation.presence]``: when clients are present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cafe.errors import check_positive
from cafe.presence import Battery, ByHour, DayNight, OnOff, Presence, read_trace
from cafe.toml_tables.reading import TableLocation, look_up_name, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table
from cafe.toml_tables.signatures import call_named

_KINDS: dict[str, Callable[..., Any]] = {
    "battery": Battery,
    "by-hour": ByHour,
    "day-night": DayNight,
    "on-off": OnOff,
    "trace": read_trace,
}
_TRACE: Shape = {"kind": (str, REQUIRED), "file": (str, REQUIRED), "repeat": (float, None)}


def presence_from_table(table: Table, location: TableLocation) -> Presence:
    """Build the presence described by a table ``{ kind = ..., ... }``.

    The path of a trace's file is relative to the table's own file.
    """
    if look_up_name("kind", _KINDS, table, location) is not read_trace:
        made: Presence = call_named(_KINDS, table, location, "kind")
        return made
    given = validate_table(_TRACE, table, location)
    with location.add_to_errors():
        repeat = check_positive("repeat", given["repeat"]) if "repeat" in given else None
    return read_trace(Path(location.where).parent / given["file"], repeat)
