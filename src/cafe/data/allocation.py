"""Allocate examples to clients by class counts, and count the classes of an allocation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.examples import Rows, Shards, check_rng, check_rows
from cafe.errors import InputError, check_type

Counts = NDArray[np.int64]


def allocate(labels: ArrayLike, counts: ArrayLike, rng: np.random.Generator) -> Shards:
    """Shards in which client k holds ``counts[k, c]`` examples of class c, drawn at random.

    The rows of a class are shuffled and given out client by client. If the rest is too short for
    the next client, all rows of the class are shuffled again. So no client holds a row twice, and
    clients share rows only if there are too few. The rows of a client are ordered by class.

    Args:
        labels: the class of each example.
        counts: the number of examples by client and class.
        rng: the source of randomness.

    Example:
        >>> import cafe, numpy as np
        >>> shards = cafe.data.allocate([0, 0, 1, 1], [[2, 0], [0, 1]], np.random.default_rng(0))
        >>> sorted(shards[0].tolist()), len(shards[1])
        ([0, 1], 1)
    """
    check_rng(rng)
    y, table = classes_of(labels), np.asarray(counts)
    sizes = np.bincount(y)
    if table.dtype.kind not in "iu" or table.ndim != 2 or table.shape[1] != len(sizes):
        raise InputError(
            "counts must be whole numbers, with a row per client and a column per class "
            f"({len(sizes)}). Got {table.dtype} of shape {table.shape}."
        )
    wrong = np.argwhere((table < 0) | (table > sizes))
    if len(wrong):
        client, scarce = wrong[0]
        raise InputError(
            "The examples of a client are all different, so it cannot hold more of a class than "
            f"there are, nor fewer than 0. Client {client} is to hold {table[client, scarce]} of a "
            f"class that has {sizes[scarce]}: ask for fewer per client."
        )
    by_class = np.split(np.argsort(y, kind="stable"), np.cumsum(sizes)[:-1])
    rows = [_draw_rows(rows, column, rng) for rows, column in zip(by_class, table.T, strict=True)]
    clients = np.arange(len(table))
    holder = np.concatenate([np.repeat(clients, column) for column in table.T])
    by_client = np.argsort(holder, kind="stable")
    starts = np.cumsum([0, *table.sum(axis=1)])
    return Shards(np.concatenate(rows)[by_client], starts)


def class_counts(labels: ArrayLike, shards: Shards) -> Counts:
    """The number of examples of each class that each client holds, of shape (clients, classes).

    Example:
        >>> import cafe
        >>> shards = cafe.data.Shards.of([[0, 1], [1, 2, 3]])
        >>> cafe.data.class_counts([0, 1, 1, 1], shards).tolist()
        [[1, 1], [0, 3]]
    """
    check_type("shards", shards, Shards, "cafe.data.Shards")
    y = classes_of(labels)
    check_rows(shards.rows, y)
    classes = int(y.max()) + 1
    holder = np.repeat(np.arange(len(shards)), shards.counts)
    cells = np.bincount(holder * classes + y[shards.rows], minlength=len(shards) * classes)
    return cells.reshape(len(shards), classes)


def classes_of(labels: ArrayLike) -> Rows:
    """The labels as an array of classes. Raises an error if they are not classes."""
    y = np.asarray(labels)
    if y.ndim != 1 or not y.size or y.dtype.kind not in "iu" or y.min() < 0:
        raise InputError(
            "Examples are allocated by class, so labels must be a flat array of whole numbers, 0 "
            f"or more. Got {y.dtype} of shape {y.shape}. {_advice(y)}"
        )
    return y.astype(np.intp)


def _advice(y: NDArray[Any]) -> str:
    if y.dtype.kind in "US":
        return "Number the classes: names, y = numpy.unique(labels, return_inverse=True)."
    return "If y is not one class per example, use IID or Quantity."


def _draw_rows(rows: Rows, sizes: Counts, rng: np.random.Generator) -> Rows:
    """``sizes[0]`` of the rows, then ``sizes[1]``, and so on; no size exceeds ``len(rows)``."""
    ends = np.cumsum(sizes)
    drawn = [rows[:0]]
    served, given = 0, 0
    while served < len(sizes):
        served = int(np.searchsorted(ends, given + len(rows), side="right"))
        drawn.append(rng.permutation(rows)[: ends[served - 1] - given])
        given = int(ends[served - 1])
    return np.concatenate(drawn)
