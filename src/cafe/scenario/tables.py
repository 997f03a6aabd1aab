"""TOML tables to objects, with every fault in a sentence that names its place."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from cafe.errors import FileError, InputError, did_you_mean
from cafe.federation import Federation
from cafe.fleet import phones
from cafe.latency import Exponential, Latency
from cafe.scenario.names import REQUIRED, Shape, Table, families_by_name, parameters_of

T = TypeVar("T")

_MEMBERS: Shape = {
    "clients": (int, REQUIRED),
    "latency": (Table, None),
    "rate": (float, None),
    "availability": (float, None),
    "examples": (int, None),
}
_PRESETS: dict[str, Callable[..., Federation]] = {"phones": phones}

_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    list[float]: "a list of numbers",
    list[Table]: "a list of tables",
    Table: "a table",
}
_VALUES: dict[Any, str] = {int: "100", float: "1.0", list[float]: "[1.0, 2.5]"}
_EXAMPLES = {
    "components": 'components = [{ family = "constant", value = 1.0 }]',
    "family": 'family = "exponential"',
    "federation": "[federation] and the lines that belong to it",
    "group": "[[federation.group]], with two brackets, and the lines that belong to it",
    "latency": 'latency = { family = "exponential", rate = 1.0 }',
    "preset": 'preset = "phones"',
}


def federation_from_table(table: Table, where: str | Path = "scenario") -> Federation:
    """The federation described by the table ``[federation]``; ``where`` begins its messages."""
    place = _Place(where, "federation")
    if "group" not in table:
        return _members(table, place)
    for key in table:
        if key in _MEMBERS or key == "preset":
            raise place.error(
                f"{place.named(key)} cannot stand beside federation.group, which describes all "
                "clients: move it into a group, or take the groups out."
            )
    groups = _validated({"group": (list[Table], REQUIRED)}, table, place)["group"]
    if not groups:
        raise place.error("federation.group must hold at least one group. Got none: add one.")
    parts = [_members(group, place.inside(f"group {n}")) for n, group in enumerate(groups, 1)]
    return Federation.join(*parts)


def latency_from_table(table: Table, where: str | Path = "latency") -> Latency:
    """The latency described by ``{ family = ..., ... }``; ``where`` begins its messages."""
    return _latency(table, _Place(where))


@dataclass(frozen=True)
class _Place:
    """A table in a file: where a message says that something is wrong."""

    where: str | Path
    key: str = ""

    def named(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key

    def inside(self, key: str) -> _Place:
        return _Place(self.where, self.named(key))

    def error(self, message: str) -> FileError:
        return FileError(self.where, message)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Name the place in the message of a class that refuses its arguments."""
        try:
            yield
        except InputError as error:
            raise self.error(f"{self.key}: {error}" if self.key else f"{error}") from None


def load_toml(path: Path, text: str) -> Federation:
    """The federation in the text of a TOML file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        found = re.match(r"line (\d+)", where)
        line = int(found[1]) if found else len(text.splitlines())
        raise FileError(path, f"this is not TOML. {what}: correct the line.", line) from None
    place = _Place(path)
    table = _validated({"federation": (Table, REQUIRED)}, document, place)["federation"]
    return federation_from_table(table, path)


def _members(table: Table, place: _Place) -> Federation:
    """Clients that are alike, or a preset."""
    if "preset" in table:
        return _preset(table, place)
    given = _validated(_MEMBERS, table, place)
    if ("rate" in given) == ("latency" in given):
        raise place.error(
            f"{place.key} needs either a rate or a latency. "
            f"Got {'both' if 'rate' in given else 'neither'}: write rate = 1.0, or "
            f"{_EXAMPLES['latency']}."
        )
    if "rate" in given:
        with place.explaining():
            latency: Latency = Exponential(given.pop("rate"))
    else:
        latency = _latency(given.pop("latency"), place.inside("latency"))
    with place.explaining():
        return Federation(latency=latency, **given)


def _preset(table: Table, place: _Place) -> Federation:
    preset = _chosen("preset", _PRESETS, table, place)
    types = get_type_hints(preset)
    parameters = inspect.signature(preset).parameters
    shape: Shape = {name: (types[name], None) for name in parameters}
    given = _validated({"preset": (str, REQUIRED), **shape}, table, place)
    del given["preset"]
    with place.explaining():
        return preset(**given)


def _latency(table: Table, place: _Place) -> Latency:
    family = _chosen("family", families_by_name(), table, place)
    shape = parameters_of(family)
    given = _validated({"family": (str, REQUIRED), **shape}, table, place)
    del given["family"]
    for key in [key for key in given if shape[key][0] == list[Table]]:
        given[key] = [
            _latency(inner, place.inside(f"{key} {n}")) for n, inner in enumerate(given[key], 1)
        ]
    with place.explaining():
        return family(**given)


def _chosen(key: str, known: Mapping[str, T], table: Table, place: _Place) -> T:
    """What the name under ``key`` stands for."""
    if key not in table:
        raise place.error(f"{place.named(key)} is missing. {did_you_mean('', known)}")
    name = _validated({key: (str, REQUIRED)}, {key: table[key]}, place)[key]
    if name not in known:
        raise place.error(
            f"{place.named(key)} must be a known one. Got '{name}'. {did_you_mean(name, known)}"
        )
    return known[name]


def _validated(shape: Shape, table: Table, place: _Place) -> Table:
    """A copy of the table, whose keys and their types are those of the shape."""
    from pydantic import ConfigDict, ValidationError, create_model

    config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())
    definitions: Table = dict(shape)
    model = create_model("Table", __config__=config, **definitions)
    try:
        model.model_validate(table)
    except ValidationError as error:
        raise place.error(_sentence(error.errors(), shape, place)) from None
    return dict(table)


def _sentence(faults: Sequence[Any], shape: Shape, place: _Place) -> str:
    """The first fault in our words; unknown keys come first, for they explain missing ones."""
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    key, *entry = fault["loc"]
    name = place.named(key)
    if fault["type"] == "extra_forbidden":
        return f"the key {name} is not known. {_hint(key, shape)}"
    kind = shape[key][0]
    example = _EXAMPLES[key] if key in _EXAMPLES else f"{key} = {_VALUES[kind]}"
    if fault["type"] == "missing":
        return f"{name} is missing: add {_WORDS[kind]}, such as {example}."
    if entry:
        name, kind = f"{name}, entry {entry[0] + 1},", get_args(kind)[0]
    return f"{name} must be {_WORDS[kind]}. Got {_described(fault['input'])}: write {example}."


def _hint(key: str, shape: Shape) -> str:
    """What may have been meant; clients may also come in groups or from a preset."""
    if shape is not _MEMBERS:
        return did_you_mean(key, shape)
    if key == "family":
        return f"A family belongs into the latency: {_EXAMPLES['latency']}."
    return did_you_mean(key, [*shape, "group", "preset"])


def _described(value: object) -> str:
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return f"{value}".lower()
    return f"the text '{value}'" if isinstance(value, str) else f"{value}"
