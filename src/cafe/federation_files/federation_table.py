"""Tables that say who takes part: clients that are alike, groups of them, presets, a CSV file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cafe.federation import Federation
from cafe.federation_files.clients_csv import load_csv
from cafe.federation_files.family_names import families_by_name, parameters_of
from cafe.federation_files.presence_table import presence_from_table
from cafe.files import read_text
from cafe.fleet import phones
from cafe.latency import Exponential, Latency
from cafe.toml_tables.reading import Place, chosen, example, validated
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
_OTHER_KEYS = ("file", "group", "preset", "presence")  # keys that stand for others or beside them


def federation_from_table(table: Table, where: str | Path = "scenario") -> Federation:
    """The federation described by the table ``[federation]``; ``where`` begins its messages."""
    place = Place(where, "federation")
    if "presence" not in table:
        return _everybody(table, place)
    given = validated({"presence": (Table, REQUIRED)}, {"presence": table["presence"]}, place)
    rest = {key: value for key, value in table.items() if key != "presence"}
    federation = _everybody(rest, place)
    inside = place.inside("presence")
    presence = presence_from_table(given["presence"], inside)
    with inside.explaining():
        return replace(federation, presence=presence)


def _everybody(table: Table, place: Place) -> Federation:
    """All clients, whenever they are present."""
    if "group" not in table:
        return _members(table, place)
    for key in table:
        if key in (*_MEMBERS, "preset", "file"):
            raise place.error(
                f"{place.named(key)} cannot stand beside federation.group, which describes all "
                "clients: move it into a group, or take the groups out."
            )
    groups = validated({"group": (list[Table], REQUIRED)}, table, place)["group"]
    if not groups:
        raise place.error("federation.group must hold at least one group. Got none: add one.")
    parts = [_members(group, place.inside(f"group {n}")) for n, group in enumerate(groups, 1)]
    return Federation.join(*parts)


def latency_from_table(table: Table, where: str | Path = "latency") -> Latency:
    """The latency described by ``{ family = ..., ... }``; ``where`` begins its messages."""
    return _latency(table, Place(where))


def file_of(table: Table, place: Place) -> Path:
    """The CSV file that a table names, which stands beside the table's own file."""
    name: str = validated({"file": (str, REQUIRED)}, table, place)["file"]
    return Path(place.where).parent / name


def _members(table: Table, place: Place) -> Federation:
    """Clients that are alike, or a preset, or those of a CSV file."""
    if "presence" in table:
        raise place.error(
            f"{place.named('presence')} cannot stand in a group: a presence belongs to the whole "
            "federation. Move it to [federation.presence]; its parameters may be lists with one "
            "number per client."
        )
    if "preset" in table:
        return call_named(_PRESETS, table, place, "preset")
    if "file" in table:
        path = file_of(table, place)
        return load_csv(path, read_text(path))
    if "family" in table:
        raise place.error(
            f"the key {place.named('family')} is not known. "
            f"A family belongs into the latency: {example('latency', Table)}."
        )
    given = validated(_MEMBERS, table, place, _OTHER_KEYS)
    if ("rate" in given) == ("latency" in given):
        raise place.error(
            f"{place.key} needs either a rate or a latency. "
            f"Got {'both' if 'rate' in given else 'neither'}: write rate = 1.0, or "
            f"{example('latency', Table)}."
        )
    if "rate" in given:
        with place.explaining():
            latency: Latency = Exponential(given.pop("rate"))
    else:
        latency = _latency(given.pop("latency"), place.inside("latency"))
    with place.explaining():
        return Federation(latency=latency, **given)


def _latency(table: Table, place: Place) -> Latency:
    family = chosen("family", families_by_name(), table, place)
    shape = parameters_of(family)
    given = validated({"family": (str, REQUIRED), **shape}, table, place)
    del given["family"]
    for key in [key for key in given if shape[key][0] == list[Table]]:
        given[key] = [
            _latency(inner, place.inside(f"{key} {n}")) for n, inner in enumerate(given[key], 1)
        ]
    with place.explaining():
        return family(**given)
