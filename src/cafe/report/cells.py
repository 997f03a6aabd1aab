"""A table as text, the same for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cells:
    """A table as text, row by row.

    Attributes:
        title: the line above the table.
        columns: the headings.
        rows: the cells of each row, one for each column.
        words: indices of columns with words, aligned left; all others hold numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[int] = frozenset({0})
