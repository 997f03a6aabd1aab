"""Examples, and which client holds which of them."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError, check_type, shorten

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and targets, row by row.

    Attributes:
        x: the inputs, one row per example, float32.
        y: the targets: a class (whole number) or a value (float32) per example. Only learners whose
            loss supports it accept a y with more than one axis.

    Example:
        >>> import cafe
        >>> data = cafe.data.Examples([[0.1, 0.2], [0.3, 0.4]], [0, 1])
        >>> len(data), data.classes
        (2, 2)
    """

    x: NDArray[Any]
    y: NDArray[Any]

    def __post_init__(self) -> None:
        x, y = _numbers("x", self.x), _targets(self.y)
        if x.ndim < 2 or y.shape[:1] != x.shape[:1] or not len(x):
            raise InputError(
                "Examples need a row of x for every entry of y, and at least one row. "
                f"Got x of shape {x.shape} and y of shape {y.shape}."
            )
        whole = y.dtype.kind in "iub"
        if whole and y.min() < 0:
            raise InputError(f"Classes must be whole numbers, 0 or more. Got {y.min()}.")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y.astype(np.int64 if whole else np.float32))

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def classes(self) -> int:
        """The number of classes; 0 if y holds values or has more than one axis."""
        return int(self.y.max()) + 1 if self.y.dtype.kind == "i" and self.y.ndim == 1 else 0

    def take(self, rows: Rows) -> Examples:
        """The examples at ``rows``, which may repeat."""
        return Examples(self.x[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Shards:
    """The rows that each client holds. Several clients may hold a row, one may hold it repeatedly.

    Attributes:
        rows: the rows of client 0, then those of client 1, and so on.
        starts: the index in ``rows`` at which each client's rows start, and the end of the last.

    Example:
        >>> import cafe
        >>> shards = cafe.data.Shards.of([[0, 2], [1, 3, 4]])
        >>> len(shards), shards[1].tolist(), shards.counts.tolist()
        (2, [1, 3, 4], [2, 3])
    """

    rows: Rows
    starts: Rows

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _whole("rows", self.rows))
        object.__setattr__(self, "starts", _whole("starts", self.starts))
        if len(self.starts) < 2:
            raise InputError("Shards need at least one client. Got none.")
        if self.starts[0] != 0 or self.starts[-1] != len(self.rows):
            raise InputError(
                f"The starts of shards must go from 0 to the number of rows, {len(self.rows)}. Got "
                f"{self.starts[0]} to {self.starts[-1]}. Shards.of computes them from the rows of "
                "each client."
            )
        if np.any(self.counts < 1):
            empty = int(np.argmin(self.counts))
            raise InputError(
                f"Every client needs at least one example. Client {empty} has none: give each "
                "client more examples, or use fewer clients."
            )

    @classmethod
    def of(cls, by_client: Sequence[Rows]) -> Shards:
        """Shards from one array of rows per client."""
        wanted = "a list with the rows of each client"
        check_type("by_client", by_client, (Sequence, np.ndarray), wanted)
        each = [_whole("rows", rows) for rows in by_client]
        starts = np.cumsum([0, *map(len, each)])
        return cls(np.concatenate([np.empty(0, dtype=np.intp), *each]), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, client: int) -> Rows:
        return self.rows[self.starts[:-1][client] : self.starts[1:][client]]

    @cached_property
    def counts(self) -> Rows:
        """The number of examples of each client."""
        return np.diff(self.starts)


def _numbers(name: str, given: ArrayLike) -> NDArray[np.float32]:
    try:
        return np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} of examples must be an array of numbers, with a row for each example. "
            f"Got {shorten(given)}."
        ) from None


def _targets(given: ArrayLike) -> NDArray[Any]:
    try:
        y = np.asarray(given)
    except ValueError:  # rows of different lengths
        y = np.asarray(given, dtype=object)
    if y.dtype.kind in "iubf":
        return y
    if y.dtype.kind in "US":
        raise InputError(
            f"y of examples must be numbers: a class from 0 up, or a value. Got text, "
            f"{shorten(given)}. Number the classes: "
            "names, y = numpy.unique(labels, return_inverse=True)."
        )
    raise InputError(f"y of examples must be an array of numbers. Got {shorten(given)}.")


def check_rng(rng: object) -> None:
    """Raise an error unless the argument is a generator of random numbers."""
    wanted = "a generator of random numbers, such as numpy.random.default_rng(0)"
    check_type("rng", rng, np.random.Generator, wanted)


def check_rows(rows: Rows, data: Sized) -> None:
    """Raise an error for rows outside of the examples: NumPy silently accepts negative ones."""
    if rows.size and (rows.min() < 0 or rows.max() >= len(data)):
        raise InputError(
            f"Rows must be from 0 to {len(data) - 1}, as there are {len(data)} examples. "
            f"Got {rows.min()} to {rows.max()}."
        )


def _whole(name: str, given: ArrayLike) -> Rows:
    """The array with integer type; an empty one may have any type."""
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"The {name} of shards must be a flat array of whole numbers. "
            f"Got {array.dtype} of shape {array.shape}."
        )
    return array.astype(np.intp, copy=False)
