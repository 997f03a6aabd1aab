"""Examples, and which client holds which of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and what is to be learned from them, row by row.

    Attributes:
        x: inputs, one row per example, float32.
        y: a class (whole number) or a value (float32) per example.
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
        """How many classes there are; 0 where values are to be learned."""
        return int(self.y.max()) + 1 if self.y.dtype.kind == "i" else 0

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
        object.__setattr__(self, "rows", np.asarray(self.rows, dtype=np.intp))
        object.__setattr__(self, "starts", np.asarray(self.starts, dtype=np.intp))
        if np.any(self.counts < 1):
            empty = int(np.argmin(self.counts))
            raise InputError(
                f"Every client needs at least one example. Client {empty} has none: give each "
                "client more examples, or have fewer clients."
            )

    @classmethod
    def of(cls, by_client: Sequence[Rows]) -> Shards:
        """From one array of rows per client."""
        starts = np.cumsum([0, *(len(rows) for rows in by_client)])
        return cls(np.concatenate([np.asarray(r, dtype=np.intp) for r in by_client]), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, client: int) -> Rows:
        return self.rows[self.starts[:-1][client] : self.starts[1:][client]]

    @cached_property
    def counts(self) -> Rows:
        """How many examples each client holds."""
        return np.diff(self.starts)
