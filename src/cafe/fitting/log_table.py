"""A log with named columns whose values are not yet converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cafe.errors import FileError, InputError

Column = Sequence[Any] | np.ndarray[Any, Any]
Chunks = Callable[[Sequence[str]], Iterator[list[Column]]]
CHUNK = 65_536  # rows converted to arrays at a time, to save memory with long files


@dataclass(frozen=True)
class LogTable:
    """A log with named columns, not yet converted.

    Attributes:
        where: the file, or what kind of table it is; begins error messages.
        names: the columns.
        chunks: called with some of the columns: their values, many rows at a time.
        place: called with the number of a row from 0: where it is, such as "line 7".
        decimal_comma: whether 1,5 is a number.
        units: the units of columns whose values have one.
        zones: the columns of date-times whose values have a zone.
    """

    where: str
    names: Sequence[str]
    chunks: Chunks
    place: Callable[[int], str]
    decimal_comma: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    zones: frozenset[str] = frozenset()

    def error(self, message: str, row: int | None = None) -> InputError:
        """The error with this message, which begins with the file and the row."""
        return FileError(self.where if row is None else f"{self.where}, {self.place(row)}", message)


def in_chunks(size: int, get: Callable[[str, slice], Column]) -> Chunks:
    """Chunks of ``size`` rows; ``get`` returns a part of a column."""

    def chunks(wanted: Sequence[str]) -> Iterator[list[Column]]:
        for start in range(0, size, CHUNK):
            yield [get(name, slice(start, start + CHUNK)) for name in wanted]

    return chunks


def check_unique(where: str, names: Sequence[str]) -> None:
    """Raise an error if a name appears twice, because it would not be clear which is meant."""
    if len(names) > len(set(names)):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise FileError(where, f"the column '{twice}' appears twice. Keep one, or rename it.")
