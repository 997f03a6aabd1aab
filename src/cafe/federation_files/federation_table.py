"""The table ``[federation]``: equal clients, groups of them, presets, or a CSV file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cafe.errors import check_type
from cafe.federation import Federation
from cafe.federation_files.clients_csv import load_csv
from cafe.federation_files.family_names import families_by_name, parameters_of
from cafe.federation_files.presence_table import presence_from_table
from cafe.files import read_text
from cafe.latency import Exponential, Latency
from cafe.phone_fleet import phones
from cafe.toml_tables.reading import TableLocation, example_line, look_up_name, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table
from cafe.toml_tables.signatures import call_named

_MEMBERS: Shape = {
    "clients": (int, REQUIRED),
    "latency": (Table, None),
    "rate": (float, None),
    "availability": (float, None),
    "examples": (int, None),
    "per_step": (float, None),
}
_PRESETS: dict[str, Callable[..., Federation]] = {"phones": phones}
_OTHER_KEYS = ("file", "group", "preset", "presence")  # further keys, for suggestions in messages


def federation_from_table(table: Table, where: str | Path = "scenario") -> Federation:
    """Build the federation described by a table ``[federation]``.

    Args:
        table: the table, as TOML gives it.
        where: the file that the table comes from, which begins error messages; also the folder of
            the files that the table names.

    Example:
        >>> from cafe.federation_files import federation_from_table
        >>> federation_from_table({"clients": 100, "rate": 1.0})
        Federation(100 clients of 1 kind, Exponential)
    """
    check_type("table", table, dict, "a table, as TOML gives it: a dict")
    location = TableLocation(where, "federation")
    if "presence" not in table:
        return _without_presence(table, location)
    given = validate_table(
        {"presence": (Table, REQUIRED)}, {"presence": table["presence"]}, location
    )
    rest = {key: value for key, value in table.items() if key != "presence"}
    federation = _without_presence(rest, location)
    inside = location.inside("presence")
    presence = presence_from_table(given["presence"], inside)
    with inside.add_to_errors():
        return replace(federation, presence=presence)


def _without_presence(table: Table, location: TableLocation) -> Federation:
    """The federation without its presence."""
    if "group" not in table:
        return _members(table, location)
    for key in table:
        if key in (*_MEMBERS, "preset", "file"):
            raise location.error(
                f"{location.full_key(key)} cannot stand beside federation.group, which describes "
                "all clients: move it into a group, or remove the groups."
            )
    groups = validate_table({"group": (list[Table], REQUIRED)}, table, location)["group"]
    if not groups:
        raise location.error("federation.group must have at least one group. Got none: add one.")
    parts = [_members(group, location.inside(f"group {n}")) for n, group in enumerate(groups, 1)]
    return Federation.join(*parts)


def latency_from_table(table: Table, where: str | Path = "latency") -> Latency:
    """Build the latency described by a table ``{ family = ..., ... }``.

    Args:
        table: the table, as TOML gives it.
        where: the origin of the table, which begins error messages.

    Example:
        >>> from cafe.federation_files import latency_from_table
        >>> latency_from_table({"family": "weibull", "shape": 0.8, "scale": 2.0})
        Weibull(shape=0.8, scale=2.0)
    """
    check_type("table", table, dict, "a table, as TOML gives it: a dict")
    return _latency(table, TableLocation(where))


def csv_path(table: Table, location: TableLocation) -> Path:
    """The path of the CSV file that a table names, relative to the table's own file."""
    name: str = validate_table({"file": (str, REQUIRED)}, table, location)["file"]
    return Path(location.where).parent / name


def _members(table: Table, location: TableLocation) -> Federation:
    """The clients of one group: equal clients, a preset, or a CSV file."""
    if "presence" in table:
        raise location.error(
            f"{location.full_key('presence')} cannot stand in a group: a presence belongs to the "
            "whole federation. Move it to [federation.presence]; its parameters may be lists with "
            "one number per client."
        )
    if "preset" in table:
        return call_named(_PRESETS, table, location, "preset")
    if "file" in table:
        path = csv_path(table, location)
        return load_csv(path, read_text(path))
    if "family" in table:
        raise location.error(
            f"the key {location.full_key('family')} is not known. "
            f"Put the family into the latency: {example_line('latency', Table)}."
        )
    given = validate_table(_MEMBERS, table, location, _OTHER_KEYS)
    if ("rate" in given) == ("latency" in given):
        raise location.error(
            f"{location.key} needs either a rate or a latency. "
            f"Got {'both' if 'rate' in given else 'neither'}: write rate = 1.0, or "
            f"{example_line('latency', Table)}."
        )
    if "rate" in given:
        with location.add_to_errors():
            latency: Latency = Exponential(given.pop("rate"))
    else:
        latency = _latency(given.pop("latency"), location.inside("latency"))
    with location.add_to_errors():
        return Federation(latency=latency, **given)


def _latency(table: Table, location: TableLocation) -> Latency:
    family = look_up_name("family", families_by_name(), table, location)
    shape = parameters_of(family)
    given = validate_table({"family": (str, REQUIRED), **shape}, table, location)
    del given["family"]
    for key in [key for key in given if shape[key][0] == list[Table]]:
        given[key] = [
            _latency(inner, location.inside(f"{key} {n}")) for n, inner in enumerate(given[key], 1)
        ]
    with location.add_to_errors():
        return family(**given)
