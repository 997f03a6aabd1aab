"""Examples, and which client holds which of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and what is to be learned from them, row by row.

    Attributes:
        x: inputs, one row per example, float32.
        y: a class (whole number) or a value (float32) per example. More axes than one are for a
            learner whose loss is made for them.
    """

    x: NDArray[Any]
    y: NDArray[Any]

    def __post_init__(self) -> None:
        x, y = np.ascontiguousarray(self.x, dtype=np.float32), np.asarray(self.y)
        if x.ndim < 2 or y.shape[:1] != x.shape[:1] or not len(x):
            raise InputError(
                "Examples need a row of x for every entry of y, and at least one. "
                f"Got x of shape {x.shape} and y of shape {y.shape}."
            )
        whole = y.dtype.kind in "iub"
        if whole and y.min() < 0:
            raise InputError(f"Classes are whole numbers from 0 up. Got {y.min()} among them.")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y.astype(np.int64 if whole else np.float32))

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def classes(self) -> int:
        """How many classes there are; 0 where an example has a value, or more than one class."""
        return int(self.y.max()) + 1 if self.y.dtype.kind == "i" and self.y.ndim == 1 else 0

    def take(self, rows: Rows) -> Examples:
        """The examples at ``rows``; one may be taken more than once."""
        return Examples(self.x[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Shards:
    """Which rows each client holds. A row may be held by several, or by one several times.

    Attributes:
        rows: client 0's rows, then client 1's, and so on.
        starts: where each client's rows begin in ``rows``, and the end of the last.
    """

    rows: Rows
    starts: Rows

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _whole("rows", self.rows))
        object.__setattr__(self, "starts", _whole("starts", self.starts))
        if len(self.starts) < 2:
            raise InputError("Shards need at least one client. Got none: nobody would learn.")
        if self.starts[0] != 0 or self.starts[-1] != len(self.rows):
            raise InputError(
                f"The starts of shards go from 0 to the number of rows, {len(self.rows)}. Got "
                f"{self.starts[0]} to {self.starts[-1]}: Shards.of makes them from each client's "
                "rows."
            )
        if np.any(self.counts < 1):
            empty = int(np.argmin(self.counts))
            raise InputError(
                f"Every client needs at least one example. Client {empty} has none: give each "
                "client more examples, or have fewer clients."
            )

    @classmethod
    def of(cls, by_client: Sequence[Rows]) -> Shards:
        """From one array of rows per client."""
        each = [_whole("rows", rows) for rows in by_client]
        starts = np.cumsum([0, *map(len, each)])
        return cls(np.concatenate([np.empty(0, dtype=np.intp), *each]), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, client: int) -> Rows:
        return self.rows[self.starts[:-1][client] : self.starts[1:][client]]

    @cached_property
    def counts(self) -> Rows:
        """How many examples each client holds."""
        return np.diff(self.starts)


def check_rows(rows: Rows, data: Examples) -> None:
    """Refuse rows that are not among the examples: NumPy would take a negative one in silence."""
    if rows.size and (rows.min() < 0 or rows.max() >= len(data)):
        raise InputError(
            f"Rows must be from 0 to {len(data) - 1}, as there are {len(data)} examples. "
            f"Got {rows.min()} to {rows.max()}."
        )


def _whole(name: str, given: ArrayLike) -> Rows:
    """As an array of whole numbers; an empty one may be of any kind."""
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"The {name} of shards must be a flat array of whole numbers. "
            f"Got {array.dtype} of shape {array.shape}."
        )
    return array.astype(np.intp, copy=False)
