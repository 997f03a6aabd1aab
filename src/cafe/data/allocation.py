"""From how many examples of each class a client holds to which ones, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.examples import Rows, Shards
from cafe.errors import InputError

Counts = NDArray[np.int64]


def allocate(labels: ArrayLike, counts: ArrayLike, rng: np.random.Generator) -> Shards:
    """Shards in which client k holds ``counts[k, c]`` examples of class c, drawn at random.

    The rows of a class are shuffled like a deck of cards and dealt client by client; a deck that
    cannot serve the next client is gathered and shuffled anew. So no client holds a row twice, and
    no two share one as long as there are enough to go round. Each client's rows are in the order of
    their classes.
    """
    y, table = classes_of(labels), np.asarray(counts)
    sizes = np.bincount(y)
    if table.dtype.kind not in "iu" or table.ndim != 2 or table.shape[1] != len(sizes):
        raise InputError(
            "counts must be whole numbers, a row per client and a column per class "
            f"({len(sizes)}). Got {table.dtype} of shape {table.shape}."
        )
    wrong = np.argwhere((table < 0) | (table > sizes))
    if len(wrong):
        client, scarce = wrong[0]
        raise InputError(
            "A client's examples are all different, so of a class it can hold 0 to as many as "
            f"there are. Client {client} is to hold {table[client, scarce]} of one that has "
            f"{sizes[scarce]}: ask for fewer per client."
        )
    decks = np.split(np.argsort(y, kind="stable"), np.cumsum(sizes)[:-1])
    rows = [_hands(deck, hand, rng) for deck, hand in zip(decks, table.T, strict=True)]
    clients = np.arange(len(table))
    holder = np.concatenate([np.repeat(clients, hand) for hand in table.T])
    by_client = np.argsort(holder, kind="stable")
    starts = np.cumsum([0, *table.sum(axis=1)])
    return Shards(np.concatenate(rows)[by_client], starts)


def class_counts(labels: ArrayLike, shards: Shards) -> Counts:
    """How many examples of each class every client holds, of shape (clients, classes)."""
    y = classes_of(labels)
    classes = int(y.max()) + 1
    holder = np.repeat(np.arange(len(shards)), shards.counts)
    cells = np.bincount(holder * classes + y[shards.rows], minlength=len(shards) * classes)
    return cells.reshape(len(shards), classes)


def classes_of(labels: ArrayLike) -> Rows:
    """The labels as an array of classes, refusing what is none."""
    y = np.asarray(labels)
    if y.ndim != 1 or not y.size or y.dtype.kind not in "iu" or y.min() < 0:
        raise InputError(
            "Examples are dealt by class, so labels must be a flat array of whole numbers, 0 or "
            f"more. Got {y.dtype} of shape {y.shape}: where values are learned there are no "
            "classes; use IID or Quantity."
        )
    return y.astype(np.intp)


def _hands(deck: Rows, sizes: Counts, rng: np.random.Generator) -> Rows:
    """``sizes[0]`` rows of the deck, then ``sizes[1]``, and so on; none is larger than the deck."""
    ends = np.cumsum(sizes)
    hands = [deck[:0]]
    served, dealt = 0, 0
    while served < len(sizes):
        served = int(np.searchsorted(ends, dealt + len(deck), side="right"))
        hands.append(rng.permutation(deck)[: ends[served - 1] - dealt])
        dealt = int(ends[served - 1])
    return np.concatenate(hands)
