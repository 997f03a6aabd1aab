"""Partitions: how the examples are spread over the clients.

A partition is a value, called with the labels, the number of clients and a generator. It decides
how many examples of each class every client holds; :func:`cafe.data.allocate` decides which ones,
and there it says when two clients share a row. Where an option is left out it is as large as lets
every client have rows of its own.

A partition is one frozen dataclass in this file; its name in files is its class's, in small
letters, and its keys there are its fields.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, is_dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.allocation import Counts, allocate, classes_of
from cafe.data.examples import Rows, Shards
from cafe.errors import InputError, is_finite_number

Mask = NDArray[np.bool_]
MOST_ALPHA = 1e9  # shares are equal long before, and overflow long after


class Partition(Protocol):
    """Which client holds which of the labelled examples."""

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """The rows of every client; the same generator, in the same state, gives the same."""


@dataclass(frozen=True)
class IID:
    """Every client holds equally many examples of each class (Sec. 8.1).

    Where values are learned rather than classes, equally many of all examples.

    Attributes:
        per_client: examples of a client, a multiple of the number of classes.
    """

    per_client: int | None = None

    def __post_init__(self) -> None:
        _check_whole(self, "per_client")

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Deal the same hand to all."""
        valued = np.asarray(labels).dtype.kind == "f"
        y, sizes = _ready(np.zeros(np.shape(labels), dtype=int) if valued else labels, clients)
        held = np.ones((clients, len(sizes)), dtype=bool)
        classes = len(sizes)
        if self.per_client is None:
            number = _goes_round(sizes, held, "per_client")
        elif self.per_client % classes:
            near = max(self.per_client // classes, 1) * classes
            raise InputError(
                f"IID's per_client must be a multiple of the number of classes ({classes}). Got "
                f"{self.per_client}, which cannot be as many of each. Give {near}, or leave it out."
            )
        else:
            number = self.per_client // classes
        return allocate(y, number * held, rng)


@dataclass(frozen=True)
class Classes:
    """Every client holds a few classes, no two clients the same ones (Sec. 8.1).

    All hold equally many examples, spread over their classes as evenly as whole numbers allow.

    Attributes:
        each: classes of a client.
        per_client: examples of a client.
    """

    each: int = 3
    per_client: int | None = None

    def __post_init__(self) -> None:
        _check_whole(self, "each")
        _check_whole(self, "per_client", least=self.each)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Draw distinct combinations of classes, one per client."""
        y, sizes = _ready(labels, clients)
        ways = math.comb(len(sizes), self.each)
        if clients > ways:
            raise InputError(
                f"Classes gives every client its own combination of classes. Of {len(sizes)} "
                f"classes, {self.each} can be chosen in {ways} ways: too few for {clients} "
                "clients. Change each, or have fewer clients."
            )
        chosen = _combinations(len(sizes), self.each, clients, rng)
        held = np.zeros((clients, len(sizes)), dtype=bool)
        np.put_along_axis(held, chosen, True, axis=1)
        if self.per_client is None:
            return allocate(y, _goes_round(sizes, held, "per_client") * held, rng)
        number, extra = divmod(self.per_client, self.each)
        counts = number * held
        more = rng.permuted(chosen, axis=1)[:, :extra]
        np.put_along_axis(counts, more, number + 1, axis=1)
        return allocate(y, counts, rng)


@dataclass(frozen=True)
class Single:
    """Client k holds class k mod the number of classes, and an arbitrary number of it (Sec. 8.2).

    The number is drawn uniformly; make ``least`` and ``most`` the same for a fixed one.

    Attributes:
        least: fewest examples of a client.
        most: most examples of a client.
    """

    least: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Draw how many each client holds."""
        y, sizes = _ready(labels, clients)
        held = _one_each(np.arange(clients) % len(sizes), len(sizes))
        return allocate(y, _between(self.least, self.most, sizes, held, rng), rng)


@dataclass(frozen=True)
class Biased:
    """The first clients repeat a few examples of class 0; each other one holds one other class.

    Client k of the others holds class (k mod 9) + 1 where there are ten classes, and as many
    examples as a biased one with its repetitions (Sec. 8.3, Table I, where the biased clients are
    also the fast ones).

    Attributes:
        share: of the clients that are biased, to the nearest client.
        points: different examples of a biased client.
        per_client: examples of a client.
    """

    share: float = 0.1
    points: int = 5
    per_client: int | None = None

    def __post_init__(self) -> None:
        if not (is_finite_number(self.share) and 0 <= self.share < 1):
            raise InputError(
                "Biased's share must be a number from 0 to below 1. "
                f"Got {self.share!r}: somebody must hold the other classes."
            )
        _check_whole(self, "points")
        _check_whole(self, "per_client", least=self.points)

    def biased(self, clients: int) -> Mask:
        """Which clients are biased."""
        return np.arange(clients) < round(self.share * clients)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Deal the few and the other classes, then repeat the few."""
        y, sizes = _ready(labels, clients)
        biased = self.biased(clients)
        others = len(sizes) - 1
        if not others or biased.all():
            raise InputError(
                "Biased needs a class beside the first and a client that is not biased. Got "
                f"{len(sizes)} classes and {np.count_nonzero(~biased)} such clients: lower share, "
                "or take other labels."
            )
        held = _one_each(np.arange(clients) % others + 1, len(sizes))
        held[biased] = False
        number = self.per_client or _goes_round(sizes, held, "per_client", self.points)
        counts = number * held
        counts[biased, 0] = self.points
        dealt, few = allocate(y, counts, rng).rows, np.count_nonzero(biased) * self.points
        repeated = dealt[:few].reshape(-1, self.points)[:, np.arange(number) % self.points]
        return Shards(
            np.concatenate([repeated.ravel(), dealt[few:]]), np.arange(clients + 1) * number
        )


@dataclass(frozen=True)
class Random:
    """Every client holds a random number of classes, and of each a random number (Sec. 8.3).

    Both are drawn uniformly.

    Attributes:
        least: fewest examples of a class that a client holds.
        most: most examples of a class that a client holds.
    """

    least: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Draw how many classes, which ones, and how many of each."""
        y, sizes = _ready(labels, clients)
        number = rng.integers(1, len(sizes), size=(clients, 1), endpoint=True)
        held = _shuffled(len(sizes), clients, rng) < number
        return allocate(y, _between(self.least, self.most, sizes, held, rng), rng)


@dataclass(frozen=True)
class Dirichlet:
    """Each class is spread over the clients in shares drawn from a Dirichlet distribution.

    Every example is held by exactly one client. Clients left with too few then get some of the
    commonest class of whoever holds most, one by one.

    Attributes:
        alpha: its parameter; the smaller, the fewer clients have most of a class.
        least: fewest examples of a client.
    """

    alpha: float = 0.5
    least: int = 1

    def __post_init__(self) -> None:
        _check_alpha(self)
        _check_whole(self, "least")

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Draw the shares of every class, and see that nobody is left with too few."""
        y, sizes = _ready(labels, clients)
        _check_enough(self, len(y), clients, self.least)
        shares = rng.dirichlet(np.full(clients, self.alpha), size=len(sizes))
        counts = rng.multinomial(sizes, shares).T.astype(np.int64)
        _fill_up(counts, self.least)
        return allocate(y, counts, rng)


@dataclass(frozen=True)
class Quantity:
    """Clients hold examples of all sorts alike, but differ in how many.

    Every example is held by exactly one client: each has the least, and what is left is spread in
    shares drawn from a Dirichlet distribution.

    Attributes:
        alpha: its parameter; the smaller, the fewer clients have most of the examples.
        least: fewest examples of a client.
    """

    alpha: float = 1.0
    least: int = 1

    def __post_init__(self) -> None:
        _check_alpha(self)
        _check_whole(self, "least")

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """Draw the clients' numbers; what the labels are does not matter."""
        y, _ = _ready(np.zeros(np.shape(labels), dtype=int), clients)
        _check_enough(self, len(y), clients, self.least)
        shares = rng.dirichlet(np.full(clients, self.alpha))
        counts = self.least + rng.multinomial(len(y) - self.least * clients, shares)
        return allocate(y, counts[:, np.newaxis], rng)


PARTITIONS: dict[str, type[Any]] = {
    name.lower(): found
    for name, found in list(globals().items())
    if isinstance(found, type) and is_dataclass(found) and found.__module__ == __name__
}


def _ready(labels: ArrayLike, clients: int) -> tuple[Rows, Counts]:
    """The labels, numbered as if there were only the classes that occur; how many each has."""
    if isinstance(clients, bool) or not isinstance(clients, int | np.integer) or clients < 1:
        raise InputError(
            f"The number of clients must be a whole number, 1 or more. Got {clients!r}: there "
            "would be nobody to hold the examples."
        )
    y = np.unique(classes_of(labels), return_inverse=True)[1]
    return y, np.bincount(y)


def _goes_round(sizes: Counts, held: Mask, option: str, least: int = 1) -> int:
    """The most examples per client and class held that need not be shared; at least ``least``."""
    holders = np.count_nonzero(held, axis=0)
    each = sizes // np.maximum(holders, 1)
    scarce = int(np.argmin(np.where(holders, each, np.iinfo(np.int64).max)))
    if each[scarce] < least:
        raise InputError(
            f"There are too few examples for every client to have its own: {holders[scarce]} "
            f"clients are to hold a class that has {sizes[scarce]}, at least {least} each. Have "
            f"fewer clients, or give {option} and they share rows."
        )
    return int(each[scarce])


def _between(
    least: int, most: int | None, sizes: Counts, held: Mask, rng: np.random.Generator
) -> Counts:
    """A random number where something is held, 0 elsewhere."""
    top = most or _goes_round(sizes, held, "most", least)
    return rng.integers(least, top, size=held.shape, endpoint=True) * held


def _one_each(classes: Counts, width: int) -> Mask:
    """A mask with client k's one class."""
    return np.asarray(classes[:, np.newaxis] == np.arange(width))


def _shuffled(classes: int, clients: int, rng: np.random.Generator) -> Counts:
    """All classes in an order of each client's own, a row each."""
    return rng.permuted(np.tile(np.arange(classes), (clients, 1)), axis=1)


def _combinations(classes: int, each: int, clients: int, rng: np.random.Generator) -> Counts:
    """Distinct combinations, a row each, drawn as often as it takes.

    Not long: where all n combinations are wanted, about log(n) times n draws find them.
    """
    found = np.empty((0, each), dtype=np.int64)
    while len(found) < clients:
        drawn = np.sort(_shuffled(classes, clients, rng)[:, :each], axis=1)
        found = np.unique(np.concatenate([found, drawn]), axis=0)
    return rng.permutation(found)[:clients]


def _fill_up(counts: Counts, least: int) -> None:
    """Move single examples from whoever holds most until everyone has the least.

    It ends: while the examples suffice and someone has fewer than the least, another has more.
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


def _check_whole(partition: Partition, name: str, least: int = 1) -> None:
    value = getattr(partition, name)
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= least):
        raise InputError(
            f"{type(partition).__name__}'s {name} must be a whole number, {least} or more. "
            f"Got {value!r}: give one, or leave it out."
        )


def _check_range(partition: Single | Random) -> None:
    _check_whole(partition, "least")
    _check_whole(partition, "most", least=partition.least)


def _check_alpha(partition: Dirichlet | Quantity) -> None:
    alpha = partition.alpha
    if not (is_finite_number(alpha) and 0 < alpha <= MOST_ALPHA):
        raise InputError(
            f"{type(partition).__name__}'s alpha must be above 0 and at most {MOST_ALPHA:g}. "
            f"Got {alpha!r}: no shares can be drawn with it. 0.1 is uneven, 100 nearly even."
        )


def _check_enough(partition: Partition, examples: int, clients: int, least: int) -> None:
    if least * clients > examples:
        raise InputError(
            f"{type(partition).__name__} gives every client at least {least} of the {examples} "
            f"examples. {clients} clients need {least * clients}: have fewer clients, or a lower "
            "least."
        )
