"""Draw the number of examples of each class that each client holds."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.allocation import Counts, classes_of
from cafe.data.examples import Rows, check_rng
from cafe.errors import InputError, check_whole

Mask = NDArray[np.bool_]


def prepare_labels(
    labels: ArrayLike, clients: int, rng: np.random.Generator
) -> tuple[Rows, Counts]:
    """The labels, renumbered so that every class occurs, and the size of each class.

    Raises:
        InputError: if one of the arguments of a partition is not of its type.
    """
    check_whole("The number of clients", clients)
    check_rng(rng)
    y = np.unique(classes_of(labels), return_inverse=True)[1]
    return y, np.bincount(y)


def largest_unshared(sizes: Counts, held: Mask, option: str, least: int = 1) -> int:
    """The largest number of examples per client and class for which no clients share rows.

    Args:
        sizes: the number of examples of each class.
        held: which classes each client holds.
        option: the option with which the user can set the number, for the error message.
        least: the smallest number that is allowed.
    """
    holders = np.count_nonzero(held, axis=0)
    each = sizes // np.maximum(holders, 1)
    scarce = int(np.argmin(np.where(holders, each, np.iinfo(np.int64).max)))
    if each[scarce] < least:
        raise InputError(
            f"There are too few examples for every client to have its own: {holders[scarce]} "
            f"clients are to hold a class that has {sizes[scarce]}, at least {least} each. Use "
            f"fewer clients, or set {option}; clients then share rows."
        )
    return int(each[scarce])


def random_counts(
    least: int, most: int | None, sizes: Counts, held: Mask, rng: np.random.Generator
) -> Counts:
    """A uniform random number for each class that a client holds, 0 for the others."""
    top = most or largest_unshared(sizes, held, "most", least)
    return rng.integers(least, top, size=held.shape, endpoint=True) * held


def one_class_each(classes: Counts, width: int) -> Mask:
    """A mask in which client k holds only ``classes[k]``."""
    return np.asarray(classes[:, np.newaxis] == np.arange(width))


def shuffled_classes(classes: int, clients: int, rng: np.random.Generator) -> Counts:
    """All classes in random order, a row per client."""
    return rng.permuted(np.tile(np.arange(classes), (clients, 1)), axis=1)


def draw_combinations(classes: int, each: int, clients: int, rng: np.random.Generator) -> Counts:
    """Distinct random combinations of classes, a row per client.

    Draws until there are enough: even to find all n combinations takes only about n log(n) draws.
    """
    found = np.empty((0, each), dtype=np.int64)
    while len(found) < clients:
        drawn = np.sort(shuffled_classes(classes, clients, rng)[:, :each], axis=1)
        found = np.unique(np.concatenate([found, drawn]), axis=0)
    return rng.permutation(found)[:clients]


def fill_up(counts: Counts, least: int) -> None:
    """Move single examples from the client with the most until every client has ``least``.

    This ends if there are enough examples: while one client has too few, another has more.
    """
    totals = counts.sum(axis=1)
    richest = [(-int(total), client) for client, total in enumerate(totals)]
    heapq.heapify(richest)
    for poor in np.flatnonzero(totals < least):
        for _ in range(least - totals[poor]):
            total, rich = richest[0]
            common = int(np.argmax(counts[rich]))
            counts[rich, common] -= 1
            counts[poor, common] += 1
            heapq.heapreplace(richest, (total + 1, rich))
