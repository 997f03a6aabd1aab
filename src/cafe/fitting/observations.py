"""Observed response times and missed deadlines, from arrays or from a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import FileError, InputError, did_you_mean
from cafe.files import read_text
from cafe.latency.base import Floats

COLUMNS = ("client", "seconds", "deadline")
NAMELESS = "client"
_CHUNK = 65_536  # rows converted to arrays at a time, to save memory with long files


@dataclass(frozen=True, eq=False, init=False)
class Observations:
    """One entry per client and round: a response time, or a deadline that passed without a report.

    Attributes:
        seconds: the response times; NaN where the client missed its deadline.
        deadline: how long each client was waited for; infinite if nothing limited the wait.
        clients: the clients' names, in the order in which they first appear.
        code: which of ``clients`` each entry belongs to.

    Example:
        >>> import cafe
        >>> cafe.Observations([0.8, float("nan"), 1.1], deadline=3.0, client=["a", "b", "a"])
        Observations(2 reports and 1 missed deadlines of 2 clients)
    """

    seconds: Floats
    deadline: Floats
    clients: tuple[str, ...]
    code: NDArray[np.intp]

    def __init__(
        self,
        seconds: ArrayLike,
        deadline: ArrayLike | None = None,
        client: ArrayLike | Sequence[str] | None = None,
    ) -> None:
        """Check the entries and keep read-only copies.

        Args:
            seconds: response times, NaN (or None) for a missed deadline.
            deadline: one for all or one per entry; left out if nothing limited the wait.
            client: the name of each entry's client; left out if all belong to one client.
        """
        times = _flat("seconds", seconds)
        if times.size == 0:
            raise InputError("seconds must have at least one observation. Got none.")
        limits = np.broadcast_to(np.inf, times.shape).copy()
        if deadline is not None:
            limits[:] = _of_length("deadline", _flat("deadline", deadline, scalar=True), times.size)
        bad = find_unusable(times, limits)
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(f"Observation {at}: {explain_unusable(times[at], limits[at])}")
        names, code = _coded(client, times.size)
        for array in (times, limits, code):
            array.setflags(write=False)
        object.__setattr__(self, "seconds", times)
        object.__setattr__(self, "deadline", limits)
        object.__setattr__(self, "clients", names)
        object.__setattr__(self, "code", code)

    def __len__(self) -> int:
        return self.seconds.size

    @property
    def client(self) -> NDArray[np.str_]:
        """The name of each entry's client."""
        return np.array(self.clients)[self.code]

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Whether the client reported by its deadline."""
        return ~np.isnan(self.seconds)

    @property
    def event_times(self) -> Floats:
        """The response times of the clients that reported."""
        return self.seconds[self.reported]

    def __repr__(self) -> str:
        reports = int(self.reported.sum())
        return (
            f"Observations({reports} reports and {len(self) - reports} missed deadlines "
            f"of {len(self.clients)} clients)"
        )


def read_observations(path: str | Path) -> Observations:
    r"""Read observations from a CSV file.

    The first line names the columns, in any order: ``seconds`` (empty if the client missed its
    deadline) and optionally ``deadline`` (may be empty if ``seconds`` is given) and ``client``.

    Raises:
        FileError: if a line cannot be used; the message names the first such line.

    Example:
        >>> from pathlib import Path
        >>> import cafe
        >>> _ = Path("log.csv").write_text("client,seconds,deadline\na,1.5,5\nb,,5\n")
        >>> cafe.read_observations("log.csv")
        Observations(1 reports and 1 missed deadlines of 2 clients)
    """
    text = _text(path)
    columns = _header(path, text)
    seconds: list[Floats] = []
    deadlines: list[Floats] = []
    clients: list[str] = []
    start = 1
    for rows in _chunks(path, text):
        values, limits, names = _parsed(path, text, columns, rows, start)
        seconds.append(values)
        deadlines.append(limits)
        clients.extend(names)
        start += len(rows)
    if start == 1:
        raise FileError(
            path, "there must be at least one observation below the header. Got none: add a line."
        )
    named = clients if "client" in columns else None
    return Observations(np.concatenate(seconds), np.concatenate(deadlines), named)


def find_unusable(seconds: Floats, deadline: Floats) -> NDArray[np.bool_]:
    """Which entries cannot be used; :func:`explain_unusable` says why."""
    missed = np.isnan(seconds)
    possible = (seconds > 0) & np.isfinite(seconds) & (seconds <= deadline)
    return ~np.where(missed, (deadline > 0) & np.isfinite(deadline), possible & (deadline > 0))


def explain_unusable(seconds: float, deadline: float) -> str:
    """The error message for an entry that cannot be used."""
    if math.isnan(deadline) or deadline <= 0:
        return (
            f"a deadline must be above 0. Got {deadline:g}: no report can arrive by then. "
            "Leave it out if nothing limited the wait."
        )
    if math.isnan(seconds):
        return (
            "there must be a response time or the deadline that was missed. Got neither: give one "
            "of the two."
        )
    if math.isinf(seconds) or seconds <= 0:
        return (
            f"a response time must be above 0 and finite. Got {seconds:g}. "
            "Leave it out (NaN, or an empty field) if the client missed the deadline."
        )
    return (
        f"a response time must not be after its deadline. Got {seconds:g} with the deadline "
        f"{deadline:g}: the server cannot have seen it. Leave the time out (NaN, or an empty "
        "field) or correct the deadline."
    )


def _flat(name: str, given: ArrayLike, *, scalar: bool = False) -> Floats:
    try:
        value = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers. Got {given!r:.80}.") from None
    if value.ndim > 1 or (value.ndim == 0 and not scalar):
        raise InputError(
            f"{name} must be a flat array, one entry per client and round. "
            f"Got {value.ndim} dimensions: ravel it."
        )
    return value


def _of_length(name: str, values: Floats, size: int) -> Floats:
    if values.ndim and values.size != size:
        raise InputError(
            f"{name} must be one number or one per observation ({size}). Got {values.size}."
        )
    return values


def _coded(client: ArrayLike | None, size: int) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The distinct names in the order of first appearance, and each entry's index among them."""
    if client is None:
        return (NAMELESS,), np.zeros(size, dtype=np.intp)
    given = client if isinstance(client, list) else np.asarray(client).tolist()
    if not isinstance(given, list) or len(given) != size:
        count = len(given) if isinstance(given, list) else "a single value"
        raise InputError(f"client must have one name per observation ({size}). Got {count}.")
    place: dict[str, int] = {}
    code = [place.setdefault(name, len(place)) for name in map(str, given)]
    return tuple(place), np.array(code, dtype=np.intp)


def _text(path: str | Path) -> str:
    text = read_text(path)
    if not text.strip():
        raise FileError(path, "the first line must name the columns. Got an empty file.")
    return text.rstrip()  # blank lines are allowed only at the end


def _records(text: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), strict=True)


def _line(text: str, record: int) -> int:
    """The line on which a record begins; a quoted field may span several lines."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    for _ in islice(lines, record):
        pass
    return lines.line_num + 1


def _chunks(path: str | Path, text: str) -> Iterator[list[list[str]]]:
    """The records below the header, many at a time."""
    rows: list[list[str]] = []
    done = 0
    try:
        for row in _records(text):
            rows.append(row)
            if len(rows) == _CHUNK:
                yield rows if done else rows[1:]
                done += len(rows)
                rows = []
    except csv.Error as error:
        line = _line(text, done + len(rows))
        raise FileError(path, f"this is not CSV: {error}. Check its quotes.", line) from None
    rest = rows if done else rows[1:]
    if rest:
        yield rest


def _header(path: str | Path, text: str) -> list[str]:
    try:
        names = [name.strip() for name in next(_records(text))]
    except csv.Error as error:
        raise FileError(path, f"this is not CSV: {error}. Check its quotes.", 1) from None
    for name in names:
        if name not in COLUMNS:
            raise FileError(
                path,
                f"the first line must name the columns client, seconds and deadline. Got '{name}'. "
                f"{did_you_mean(name, COLUMNS)}",
                1,
            )
        if names.count(name) > 1:
            raise FileError(path, f"the column '{name}' appears twice. Keep one.", 1)
    if "seconds" not in names:
        raise FileError(path, "the column 'seconds' is missing: it holds the response times.", 1)
    return names


def _parsed(
    path: str | Path, text: str, columns: list[str], rows: list[list[str]], start: int
) -> tuple[Floats, Floats, Sequence[str]]:
    """Seconds, deadlines and names of some records; ``start`` is the first one's number."""
    short = np.fromiter(map(len, rows), dtype=np.intp, count=len(rows)) != len(columns)
    whole = rows[: int(np.argmax(short))] if short.any() else rows
    texts = dict(zip(columns, zip(*whole, strict=True), strict=True)) if whole else {}
    blank = ("",) * len(whole)
    seconds = _numbers(texts.get("seconds", blank), np.nan)
    deadline = _numbers(texts.get("deadline", blank), np.inf)
    names = [name.strip() for name in texts.get("client", ())]
    bad = find_unusable(seconds, deadline)
    if "" in names:
        bad[names.index("")] = True
    if bad.any():
        at = int(np.argmax(bad))
        fields = {name: texts[name][at].strip() for name in columns}
        raise FileError(path, _fault(fields, seconds[at], deadline[at]), _line(text, start + at))
    if short.any():
        _wrong_number(path, columns, len(rows[len(whole)]), _line(text, start + len(whole)))
    return seconds, deadline, names


def _wrong_number(path: str | Path, columns: list[str], got: int, line: int) -> NoReturn:
    wanted = f"{len(columns)} field{'s' if len(columns) > 1 else ''} ({','.join(columns)})"
    raise FileError(path, f"every line must have {wanted}. Got {got}.", line)


def _numbers(texts: Sequence[str], empty: float) -> Floats:
    """The number in each text: ``empty`` if blank, -inf if it is not a finite number."""
    try:
        blank = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts)) == 0
        values = np.array([text or "0" for text in texts], dtype=float)
        if any("_" in text for text in texts):  # Python would read 1_0 as 10
            raise ValueError
    except ValueError:
        blank = np.array([not text.strip() for text in texts])
        values = np.array([_number(text) for text in texts])
    return np.where(blank, empty, np.where(np.isfinite(values), values, -np.inf))


def _number(text: str) -> float:
    try:
        return float(text) if "_" not in text else -math.inf
    except ValueError:
        return -math.inf


def _fault(fields: dict[str, str], seconds: float, deadline: float) -> str:
    """The error message for a line; -inf stands for text that is not a finite number."""
    if fields.get("client") == "":
        return (
            "client must be a name. Got an empty field: fill it in, or remove the column if all "
            "lines belong to one client."
        )
    for name, value in (("seconds", seconds), ("deadline", deadline)):
        if math.isinf(value) and value < 0:
            return (
                f"{name} must be a finite number. Got '{fields[name]}'. "
                "Leave the field empty if there is none."
            )
    return explain_unusable(seconds, deadline)
