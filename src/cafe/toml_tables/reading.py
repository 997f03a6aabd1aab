"""Parse TOML and validate the keys of its tables, with error messages that name the table."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from cafe.errors import FileError, InputError, did_you_mean
from cafe.toml_tables.conversion import MismatchError, convert
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

T = TypeVar("T")

_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    list[int]: "a list of whole numbers",
    list[float]: "a list of numbers",
    list[str]: "a list of texts in quotes",
    list[Table]: "a list of tables",
    Table: "a table",
}
_VALUES: dict[Any, str] = {
    bool: "true",
    int: "100",
    float: "1.0",
    str: '"text"',
    list[int]: "[10, 20]",
    list[float]: "[1.0, 2.5]",
    list[str]: '["one", "two"]',
}
_EXAMPLES = {
    "components": 'components = [{ family = "constant", value = 1.0 }]',
    "dataset": 'dataset = "digits"',
    "family": 'family = "exponential"',
    "file": 'file = "clients.csv"',
    "group": "[[federation.group]], with two brackets, and the lines that belong to it",
    "kind": 'kind = "day-night"',
    "latency": 'latency = { family = "exponential", rate = 1.0 }',
    "name": 'name = "mcu"',
    "policies": 'policies = ["mcu", "awu"]',
    "partition": 'partition = { name = "classes", each = 3 }',
    "presence": 'presence = { kind = "day-night", share = 0.5 }',
    "preset": 'preset = "phones"',
    "seeds": "seeds = [0, 1, 2]",
    "server": 'server = { name = "adam", rate = 0.01 }',
}


@dataclass(frozen=True)
class TableLocation:
    """A table in a TOML file, as error messages name it.

    Attributes:
        where: the file.
        key: the full name of the table; empty for the whole document.
        advice: a sentence at the end of every message.
    """

    where: str | Path
    key: str = ""
    advice: str = ""

    def full_key(self, key: str) -> str:
        """The full name of a key of this table, such as ``policy.quorum``."""
        return f"{self.key}.{key}" if self.key else key

    def inside(self, key: str) -> TableLocation:
        """The location of a table inside this table."""
        return TableLocation(self.where, self.full_key(key), self.advice)

    def error(self, message: str) -> FileError:
        """A FileError with this message, which begins with the file."""
        return FileError(self.where, f"{message} {self.advice}".rstrip())

    @contextmanager
    def add_to_errors(self) -> Iterator[None]:
        """Turn an InputError of the ``with`` block into a FileError that names the table."""
        try:
            yield
        except InputError as error:
            raise self.error(f"{self.key}: {error}" if self.key else f"{error}") from None


def parse_toml(path: str | Path, text: str) -> Table:
    """Parse the text of a TOML file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        found = re.match(r"line (\d+)", where)
        line = int(found[1]) if found else len(text.splitlines())
        raise FileError(path, f"this is not valid TOML. {what}: correct the line.", line) from None


def validate_table(
    shape: Shape, table: Table, location: TableLocation, others: Iterable[str] = ()
) -> Table:
    """Check the keys of a table and the types of their values, and return a copy.

    Args:
        shape: the type and the default of each key.
        table: the table.
        location: for error messages.
        others: further keys to suggest in error messages.
    """
    # Unknown keys come first, because they explain missing ones.
    unknown = next((key for key in table if key not in shape), None)
    if unknown is not None:
        meant = did_you_mean(unknown, [*shape, *others])
        raise location.error(f"the key {location.full_key(unknown)} is not known. {meant}")
    read: Table = {}
    for key, (kind, default) in shape.items():
        name = location.full_key(key)
        if key in table:
            try:
                read[key] = convert(kind, table[key])
            except MismatchError as wrong:
                raise location.error(_mismatch(name, kind, wrong)) from None
        elif default is REQUIRED:
            add = f"add {_words(kind)}, such as {example_line(name, kind)}"
            raise location.error(f"{name} is missing: {add}.")
    return read


def look_up_name(key: str, known: Mapping[str, T], table: Table, location: TableLocation) -> T:
    """The entry of ``known`` whose name the table has under ``key``."""
    given = {key: table[key]} if key in table else {}
    name = validate_table({key: (str, None)}, given, location).get(key)
    if name is not None and name in known:
        return known[name]
    wrong = _misnamed(key, known, table)
    if wrong is not None:
        raise location.error(
            f"the key {location.full_key(wrong)} is not known. Did you mean '{key}'?"
        )
    if name is None:
        raise location.error(f"{location.full_key(key)} is missing. {did_you_mean('', known)}")
    raise location.error(_unknown(location.full_key(key), name, known))


def example_line(name: str, kind: Any) -> str:
    """A valid line of TOML for the key with this full name, for error messages."""
    key = name.rpartition(".")[2]
    if key in _EXAMPLES:
        return _EXAMPLES[key]
    if kind is Table:
        return f"[{name}] and the lines that belong to it"
    first = get_args(kind)[0] if get_origin(kind) not in (None, list) else kind
    return f"{key} = {_VALUES[first] if first in _VALUES else _quoted(first)}"


def _misnamed(key: str, known: Iterable[str], table: Table) -> str | None:
    """The key of the table that was probably meant as ``key``, or None.

    It has a known name as its value, or is spelled like ``key``. The other keys that the table may
    have are not known yet, because they depend on the name.
    """
    others = [other for other in table if other != key]
    names = (other for other in others if table[other] in [*known])
    return next(names, None) or next(iter(get_close_matches(key, others, n=1)), None)


def _mismatch(name: str, kind: Any, wrong: MismatchError) -> str:
    if _is_choice(kind) and isinstance(wrong.value, str):
        return _unknown(name, wrong.value, get_args(kind))
    at = name if wrong.entry is None else f"{name}, entry {wrong.entry + 1},"
    got, write = _described(wrong.value), example_line(name, kind)
    return f"{at} must be {_words(wrong.kind)}. Got {got}: write {write}."


def _unknown(name: str, got: str, known: Iterable[str]) -> str:
    return f"{name} must be a known name. Got '{got}'. {did_you_mean(got, known)}"


def _words(kind: Any) -> str:
    """A type in words, such as "a whole number"."""
    if kind in _WORDS:
        return _WORDS[kind]
    words: Callable[[Any], str] = _quoted if _is_choice(kind) else _words
    return " or ".join(map(words, get_args(kind)))


def _is_choice(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _quoted(text: str) -> str:
    return f'"{text}"'


def _described(value: object) -> str:
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return f"{value}".lower()
    return f"the text '{value}'" if isinstance(value, str) else f"{value}"
