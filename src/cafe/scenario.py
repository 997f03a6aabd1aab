"""TOML and CSV files to objects and back: the only place where a string becomes an object.

A federation in TOML is clients that are alike, or a preset, or groups of either::

    [federation]            [[federation.group]]
    clients = 100           clients = 40
    rate = 1.0              latency = { family = "weibull", shape = 0.8, scale = 2.0 }
    availability = 0.9      [[federation.group]]
    examples = 600          preset = "phones"

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
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from cafe import latency as latencies
from cafe.errors import FileError, InputError, did_you_mean
from cafe.federation import Federation, Indices
from cafe.latency import Constant, Exponential, Latency, Various
from cafe.latency.base import Family, Floats
from cafe.fleet import phones

Table = dict[str, Any]
Shape = dict[str, tuple[Any, Any]]  # a table's keys: the type of each value, and its default
T = TypeVar("T")

_REQUIRED = ...  # the default of a key that has none, as pydantic writes it
_CHUNK = 2_000  # rows of a CSV file held as text at a time: few enough for the cache

_MEMBERS: Shape = {
    "clients": (int, _REQUIRED),
    "latency": (Table, None),
    "rate": (float, None),
    "availability": (float, None),
    "examples": (int, None),
}
_PRESETS: dict[str, Callable[..., Federation]] = {"phones": phones}

# What TOML must hold for a field of a latency class, by the field's annotation. A field with
# another annotation is not a parameter.
_FIELD_TYPES: dict[str, Any] = {
    "Parameter": float,
    "ArrayLike": list[float],
    "Sequence[float]": list[float],
    "Sequence[Latency]": list[Table],
}
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


def load_federation(path: str | Path) -> Federation:
    """The federation described by a ``.toml`` or ``.csv`` file."""
    path = Path(path)
    loaders = {".toml": _load_toml, ".csv": _load_csv}
    if path.suffix.lower() not in loaders:
        raise FileError(
            path,
            "the name must end in .toml or .csv, which tells the format. "
            f"Got '{path.name}': rename the file.",
        )
    with _readable(path) as file:
        return loaders[path.suffix.lower()](path, file)


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
    groups = _validated({"group": (list[Table], _REQUIRED)}, table, place)["group"]
    if not groups:
        raise place.error("federation.group must hold at least one group. Got none: add one.")
    parts = [_members(group, place.inside(f"group {n}")) for n, group in enumerate(groups, 1)]
    return Federation.join(*parts)


def latency_from_table(table: Table, where: str | Path = "latency") -> Latency:
    """The latency described by ``{ family = ..., ... }``; ``where`` begins its messages."""
    return _latency(table, _Place(where))


def family_name(family: type[Latency]) -> str:
    """The name of a family in files: of ``ShiftedExponential`` it is ``shifted-exponential``."""
    words = re.findall("[A-Z][a-z]+", family.__name__)
    return "-".join(words).lower().replace("log-", "log")  # lognormal is one word


def write_federation(
    federation: Federation, path: str | Path, names: Sequence[str] | None = None
) -> None:
    """Write the CSV form, one row per client, from which the same numbers are read again.

    Args:
        federation: whose latencies are parametric families.
        path: of the file to write; its name must end in ``.csv``.
        names: of the clients, for the column ``client``.
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise FileError(path, "the name must end in .csv, or the file could not be read again.")
    columns = _names(names, federation.clients) | _cells(federation)
    if np.ndim(federation.availability) or federation.availability != 1.0:
        columns["availability"] = _texts(federation.by_client(federation.availability))
    if np.ndim(federation.examples) or federation.examples != 1:
        columns["examples"] = _texts(np.broadcast_to(federation.examples, federation.clients))
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    except OSError as error:
        raise FileError(path, f"the file cannot be written: {_reason(error)}.") from None


# ---------------------------------------------------------------- tables of TOML


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


def _load_toml(path: Path, file: TextIO) -> Federation:
    text = file.read()
    try:
        # A file that was opened with newline="" keeps its CRLF, which TOML allows.
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        found = re.match(r"line (\d+)", where)
        line = int(found[1]) if found else len(text.splitlines())
        raise FileError(path, f"this is not TOML. {what}: correct the line.", line) from None
    place = _Place(path)
    table = _validated({"federation": (Table, _REQUIRED)}, document, place)["federation"]
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
    given = _validated({"preset": (str, _REQUIRED), **shape}, table, place)
    del given["preset"]
    with place.explaining():
        return preset(**given)


def _latency(table: Table, place: _Place) -> Latency:
    family = _chosen("family", _families(), table, place)
    shape = _parameters(family)
    given = _validated({"family": (str, _REQUIRED), **shape}, table, place)
    del given["family"]
    for key in [key for key in given if shape[key][0] == list[Table]]:
        given[key] = [
            _latency(inner, place.inside(f"{key} {n}")) for n, inner in enumerate(given[key], 1)
        ]
    with place.explaining():
        return family(**given)


def _families() -> dict[str, type[Latency]]:
    """Every latency that has a name in files: all but Various, which a federation's groups make."""
    found = (getattr(latencies, name) for name in latencies.__all__)
    return {
        family_name(c): c
        for c in found
        if inspect.isclass(c)
        and issubclass(c, Latency)
        and not inspect.isabstract(c)
        and c is not Various
    }


def _parameters(family: type[Any]) -> Shape:
    return {
        field.name: (
            _FIELD_TYPES[str(field.type)],
            _REQUIRED if field.default is MISSING else field.default,
        )
        for field in fields(family)
        if field.type in _FIELD_TYPES
    }


def _chosen(key: str, known: Mapping[str, T], table: Table, place: _Place) -> T:
    """What the name under ``key`` stands for."""
    if key not in table:
        raise place.error(f"{place.named(key)} is missing. {did_you_mean('', known)}")
    name = _validated({key: (str, _REQUIRED)}, {key: table[key]}, place)[key]
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
        return f"the key {name} is not known. {did_you_mean(key, shape)}"
    kind = shape[key][0]
    example = _EXAMPLES[key] if key in _EXAMPLES else f"{key} = {_VALUES[kind]}"
    if fault["type"] == "missing":
        return f"{name} is missing: add {_WORDS[kind]}, such as {example}."
    if entry:
        name, kind = f"{name}, entry {entry[0] + 1},", get_args(kind)[0]
    return f"{name} must be {_WORDS[kind]}. Got {_described(fault['input'])}: write {example}."


def _described(value: object) -> str:
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return f"{value}".lower()
    return f"the text '{value}'" if isinstance(value, str) else f"{value}"


# ---------------------------------------------------------------- rows of CSV


@dataclass(frozen=True)
class _Rows:
    """A CSV file as columns, an entry per client.

    Attributes:
        path: of the file.
        lines: on which each client stands.
        families: each client's, as a position among ``_csv_families()``.
        numbers: the columns of numbers by name; NaN is an empty cell.
    """

    path: Path
    lines: NDArray[np.intp]
    families: Indices
    numbers: dict[str, Floats]

    def error(self, row: int | np.intp, message: str) -> FileError:
        return FileError(self.path, message, int(self.lines[row]))


def _load_csv(path: Path, file: TextIO) -> Federation:
    rows = _columns(path, _lines(path, file))
    availability, examples = _availability(rows), _examples(rows)
    parts, order = _parts(rows)
    if len(parts) == 1:
        return Federation(rows.lines.size, parts[0], availability, examples)
    kind = np.empty_like(order)
    kind[order] = np.arange(order.size)
    by_kind = availability if isinstance(availability, float) else availability[order]
    return Federation(rows.lines.size, Various(parts), by_kind, examples, kind)


def _csv_families() -> dict[str, type[Family]]:
    """The families whose parameters are single numbers, so that they fit in a row."""
    return {name: c for name, c in _families().items() if issubclass(c, Family)}


def _lines(path: Path, file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """The rows of cells, each with the line it ends on; blank lines only at the end of the file."""
    reader = csv.reader(file, strict=True)
    blank = 0
    try:
        for row in reader:
            if not row:
                blank = blank or reader.line_num
            elif blank:
                raise FileError(path, "a blank line stands between two others: remove it.", blank)
            else:
                yield reader.line_num, row
    except csv.Error as error:
        raise FileError(
            path, f"this is not CSV, {error}: correct the line.", reader.line_num
        ) from None


def _columns(path: Path, lines: Iterator[tuple[int, list[str]]]) -> _Rows:
    """All rows, read some at a time: as text they would take ten times their memory as numbers."""
    header = _header(path, next(lines, (1, []))[1])
    at: list[int] = []
    families: list[Indices] = []
    numbers: dict[str, list[Floats]] = {h: [] for h in header if h not in ("client", "family")}
    seen: dict[str, int] = {}
    while chunk := list(islice(lines, _CHUNK)):
        own = [line for line, _ in chunk]
        columns = dict(zip(header, _transposed(path, len(header), chunk), strict=True))
        _check_unique(path, own, columns.get("client", ()), seen)
        families.append(_codes(path, own, columns.get("family", ("exponential",) * len(own))))
        for name, parts in numbers.items():
            parts.append(_numbers(path, own, name, columns[name]))
        at += own
    if not at:
        raise FileError(path, "there are no clients below the first line: add a row for each.")
    joined = {name: np.concatenate(parts) for name, parts in numbers.items()}
    return _Rows(path, np.array(at, dtype=np.intp), np.concatenate(families), joined)


def _header(path: Path, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    parameters = {name for family in _csv_families().values() for name in _parameters(family)}
    known = {"client", "family", "availability", "examples"} | parameters
    if not header:
        raise FileError(path, "the first line must name the columns, such as rate. Got nothing.")
    for name in header:
        if name not in known:
            raise FileError(
                path,
                "the first line must name the columns, separated by commas. "
                f"Got '{name}', which is none. {did_you_mean(name, known)}",
                1,
            )
        if header.count(name) > 1:
            raise FileError(path, f"the column {name} is there twice: keep one of them.", 1)
    alone = [name for name in header if name in parameters - {"rate"}]
    if alone and "family" not in header:
        raise FileError(path, f"the column {alone[0]} needs a column family: add one.", 1)
    if not {"rate", "family"} & set(header):
        raise FileError(path, "there is no latency: add a column rate, or a column family.", 1)
    return header


def _transposed(
    path: Path, width: int, chunk: list[tuple[int, list[str]]]
) -> Iterator[tuple[str, ...]]:
    for line, row in chunk:
        if len(row) != width:
            raise FileError(
                path,
                f"a row must have {width} cell{'s' * (width > 1)}, one for each column. "
                f"Got {len(row)}: "
                "add or remove commas.",
                line,
            )
    return zip(*(row for _, row in chunk), strict=True)


def _check_unique(path: Path, lines: list[int], names: Sequence[str], seen: dict[str, int]) -> None:
    """Refuse a second row of one client; its name serves no other end."""
    for line, name in zip(lines, names, strict=False):
        first = seen.setdefault(name, line)
        if first != line:
            raise FileError(
                path,
                f"every client must have one row. Got '{name}' again, after line {first}: "
                "rename or remove one.",
                line,
            )


def _codes(path: Path, lines: list[int], cells: Sequence[str]) -> Indices:
    """Each row's family as a position among ``_csv_families()``."""
    codes = {name: code for code, name in enumerate(_csv_families())}
    names = [cell.strip() for cell in cells]
    try:
        return np.array([codes[name] for name in names], dtype=np.intp)
    except KeyError:
        line, name = next((n, c) for n, c in zip(lines, names, strict=True) if c not in codes)
    if name in _families():
        advice = "Its parameters do not fit in a row: describe it in a TOML file."
    else:
        advice = did_you_mean(name, codes)
    raise FileError(path, f"there is no family '{name}' in CSV. {advice}", line)


def _numbers(path: Path, lines: list[int], column: str, cells: Sequence[str]) -> Floats:
    """The numbers in the cells; NaN stands for an empty one."""
    try:
        return np.array([_number(cell) for cell in cells])
    except ValueError:
        line, cell = next((n, c) for n, c in zip(lines, cells, strict=True) if not _is_number(c))
    raise FileError(path, f"{column} must be a finite number. Got '{cell}': correct it.", line)


def _number(cell: str) -> float:
    text = cell.strip()
    if not text:
        return math.nan
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _availability(rows: _Rows) -> float | Floats:
    given = _filled(rows, "availability")
    if given is None:
        return 1.0
    everyone = np.arange(given.size)
    _accepted(rows, everyone, lambda i: _checked(given[i], availability=given[i]))
    return given


def _examples(rows: _Rows) -> int | NDArray[np.int64]:
    given = _filled(rows, "examples")
    if given is None:
        return 1
    odd = (given != np.floor(given)) | (np.abs(given) > 2**53)
    if odd.any():
        row = np.argmax(odd)
        raise rows.error(row, f"examples must be a whole number. Got {given[row]}: correct it.")
    examples = given.astype(np.int64)
    everyone = np.arange(given.size)
    _accepted(rows, everyone, lambda i: _checked(examples[i], examples=examples[i]))
    return examples


def _filled(rows: _Rows, column: str) -> Floats | None:
    values = rows.numbers.get(column)
    if values is not None and np.isnan(values).any():
        row = np.argmax(np.isnan(values))
        raise rows.error(row, f"{column} is empty: fill it for every client, or for none.")
    return values


def _checked(values: Any, **named: Any) -> Federation:
    """A federation of one client, or of several, that refuses values which are no use to any."""
    return Federation(np.size(values), Constant(1.0), **named)


def _parts(rows: _Rows) -> tuple[list[Family], Indices]:
    """One latency per family in the file, and the rows of the first, then of the second, ..."""
    parts: list[Family] = []
    order: list[Indices] = []
    for code, name in enumerate(_csv_families()):
        own = np.flatnonzero(rows.families == code)
        if own.size:
            parts.append(_part(rows, own, name))
            order.append(own)
    return parts, np.concatenate(order)


def _part(rows: _Rows, own: Indices, name: str) -> Family:
    """The latency of the rows of one family."""
    family = _csv_families()[name]
    shape = _parameters(family)
    others = {"availability", "examples"} | shape.keys()
    for column in [name for name in rows.numbers if name not in others]:
        filled = ~np.isnan(rows.numbers[column][own])
        if filled.any():
            row = own[np.argmax(filled)]
            raise rows.error(row, f"{name} has no {column}: leave that cell empty.")
    given: dict[str, Floats] = {}
    for column, (_, default) in shape.items():
        values = rows.numbers[column][own] if column in rows.numbers else np.full(own.size, np.nan)
        empty = np.isnan(values)
        if default is _REQUIRED and empty.any():
            row = own[np.argmax(empty)]
            raise rows.error(row, f"{name} needs a {column}, and there is none: fill it in.")
        if not empty.all():
            given[column] = np.where(empty, default, values) if empty.any() else values
    return _accepted(rows, own, lambda i: family(**{k: v[i] for k, v in given.items()}))


def _accepted(rows: _Rows, own: Indices, build: Callable[[slice | int], T]) -> T:
    """What ``build`` makes of all its rows, or its message about the first that it refuses."""
    if _refusal(build, slice(None)) is None:
        return build(slice(None))
    # If it refuses the rows up to the k-th, it refuses those up to any later one: bisect.
    first = bisect_left(
        range(own.size), True, key=lambda k: _refusal(build, slice(k + 1)) is not None
    )
    raise rows.error(own[first], f"{_refusal(build, first)}")


def _refusal(build: Callable[[slice | int], object], rows: slice | int) -> InputError | None:
    try:
        build(rows)
    except InputError as error:
        return error
    return None


def _cells(federation: Federation) -> dict[str, list[str]]:
    """The columns of families and their parameters, as text."""
    parts = list(_leaves(federation.latency))
    names = dict.fromkeys(name for part in parts for name in part.parameters)
    columns: dict[str, list[str]] = {"family": [], **{name: [] for name in names}}
    for part in parts:
        columns["family"] += [family_name(type(part))] * part.kinds
        for name in names:
            value = part.parameters.get(name)
            each = (
                [""] * part.kinds if value is None else _texts(np.broadcast_to(value, part.kinds))
            )
            columns[name] += each
    if federation.latency.kinds == 1:
        return {name: cells * federation.clients for name, cells in columns.items()}
    kinds = federation.kind_of_client.tolist()
    return {name: [cells[kind] for kind in kinds] for name, cells in columns.items()}


def _leaves(latency: Latency) -> Iterator[Family]:
    """The families of the kinds, in order."""
    if isinstance(latency, Various):
        for part in latency.parts:
            yield from _leaves(part)
    elif isinstance(latency, Family):
        yield latency
    else:
        raise InputError(
            f"Only families of a few numbers can be written as CSV. Got {type(latency).__name__}, "
            "whose parameters do not fit in a row: fit a family to it first."
        )


def _names(names: Sequence[str] | None, clients: int) -> dict[str, list[str]]:
    if names is None:
        return {}
    if len(names) != clients or len(set(names)) != clients:
        raise InputError(
            f"names must be one for each of the {clients} clients, all different. "
            f"Got {len(names)}, of which {len(set(names))} differ."
        )
    return {"client": list(names)}


def _texts(values: NDArray[Any]) -> list[str]:
    """Numbers as text that reads as the very same number."""
    return [repr(value) for value in values.tolist()]


# ---------------------------------------------------------------- files


@contextmanager
def _readable(path: Path) -> Iterator[TextIO]:
    """The file as text, without the mark that some editors put in front."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {_reason(error)}.") from None
    except UnicodeDecodeError as error:
        raise FileError(
            path,
            "the file must be text in UTF-8. "
            f"Got the byte 0x{error.object[error.start]:02x}: save it as UTF-8.",
        ) from None


def _reason(error: OSError) -> str:
    reasons = {
        FileNotFoundError: "there is none of that name; check the path",
        IsADirectoryError: "it is a folder; name a file in it",
        PermissionError: "permission is denied; change its mode, or copy it",
    }
    return reasons.get(type(error), f"{error.strerror}")
