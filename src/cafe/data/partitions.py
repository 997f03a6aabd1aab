"""Partitions: how the examples are distributed over the clients.

A partition is called with the labels, the number of clients and a random generator. It decides how
many examples of each class every client holds; :func:`cafe.data.allocate` decides which ones, and
documents when two clients share a row. The default of an option is the largest value for which no
two clients share a row.

Each partition is a frozen dataclass in this file. Its name in scenario files is the lower-case name
of the class, and its keys there are its fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, is_dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.data.allocation import allocate
from cafe.data.class_draws import (
    Mask,
    draw_combinations,
    fill_up,
    largest_unshared,
    one_class_each,
    prepare_labels,
    random_counts,
    shuffled_classes,
)
from cafe.data.examples import Shards
from cafe.errors import InputError, check_not_negative, check_positive, check_whole

MOST_ALPHA = 1e9  # shares are practically equal at this value; much larger ones overflow


class Partition(Protocol):
    """Distributes labelled examples over clients."""

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        """The rows of each client; a generator in the same state gives the same rows."""


@dataclass(frozen=True)
class IID:
    """Every client holds the same number of examples of each class (Sec. 8.1).

    If the labels are values rather than classes, or several for each example, every client holds
    the same number of examples.

    Attributes:
        per_client: the number of examples of a client, a multiple of the number of classes.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.IID()(labels, 5, np.random.default_rng(0))
        >>> cafe.data.class_counts(labels, shards)[0].tolist()
        [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """

    per_client: int | None = None

    def __post_init__(self) -> None:
        _check_whole(self, "per_client")

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        given = np.asarray(labels)
        valued = given.dtype.kind == "f" or given.ndim > 1
        y, sizes = prepare_labels(_one_class(given) if valued else labels, clients, rng)
        held = np.ones((clients, len(sizes)), dtype=bool)
        classes = len(sizes)
        if self.per_client is None:
            number = largest_unshared(sizes, held, "per_client")
        elif self.per_client % classes:
            near = max(self.per_client // classes, 1) * classes
            raise InputError(
                f"IID's per_client must be a multiple of the number of classes ({classes}). Got "
                f"{self.per_client}: some classes would have more. Use {near}, or leave it out."
            )
        else:
            number = self.per_client // classes
        return allocate(y, number * held, rng)


@dataclass(frozen=True)
class Classes:
    """Every client holds a few classes, no two clients the same combination (Sec. 8.1).

    All clients hold the same number of examples, distributed over their classes as evenly as whole
    numbers allow.

    Attributes:
        each: the number of classes of a client.
        per_client: the number of examples of a client.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.Classes(each=3)(labels, 5, np.random.default_rng(0))
        >>> np.count_nonzero(cafe.data.class_counts(labels, shards), axis=1).tolist()
        [3, 3, 3, 3, 3]
    """

    each: int = 3
    per_client: int | None = None

    def __post_init__(self) -> None:
        _check_whole(self, "each")
        _check_whole(self, "per_client", least=self.each)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        y, sizes = prepare_labels(labels, clients, rng)
        ways = math.comb(len(sizes), self.each)
        if clients > ways:
            raise InputError(
                f"Classes gives every client its own combination of classes. Of {len(sizes)} "
                f"classes, {self.each} can be chosen in {ways} ways: too few for {clients} "
                "clients. Change each, or use fewer clients."
            )
        chosen = draw_combinations(len(sizes), self.each, clients, rng)
        held = np.zeros((clients, len(sizes)), dtype=bool)
        np.put_along_axis(held, chosen, True, axis=1)
        if self.per_client is None:
            return allocate(y, largest_unshared(sizes, held, "per_client") * held, rng)
        number, extra = divmod(self.per_client, self.each)
        counts = number * held
        more = rng.permuted(chosen, axis=1)[:, :extra]
        np.put_along_axis(counts, more, number + 1, axis=1)
        return allocate(y, counts, rng)


@dataclass(frozen=True)
class Single:
    """Client k holds only class k modulo the number of classes (Sec. 8.2).

    The number of examples of a client is drawn uniformly between ``least`` and ``most``.

    Attributes:
        least: the smallest number of examples of a client.
        most: the largest number of examples of a client.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.Single()(labels, 12, np.random.default_rng(0))
        >>> np.unique(labels[shards[11]]).tolist()
        [1]
    """

    least: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        y, sizes = prepare_labels(labels, clients, rng)
        held = one_class_each(np.arange(clients) % len(sizes), len(sizes))
        return allocate(y, random_counts(self.least, self.most, sizes, held, rng), rng)


@dataclass(frozen=True)
class Biased:
    """The first clients hold repetitions of a few examples of class 0, the others another class.

    With ten classes, client k of the others holds class (k mod 9) + 1. All clients hold the same
    number of examples, repetitions included (Sec. 8.3, Table I, where the biased clients are also
    the fast ones).

    Attributes:
        share: the fraction of clients that are biased, rounded to whole clients.
        points: the number of different examples of a biased client.
        per_client: the number of examples of a client.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.Biased(share=0.2, points=2)(labels, 10, np.random.default_rng(0))
        >>> len(shards[0]), len(np.unique(shards[0]))
        (10, 2)
    """

    share: float = 0.1
    points: int = 5
    per_client: int | None = None

    def __post_init__(self) -> None:
        if check_not_negative("Biased's share", self.share) >= 1:
            raise InputError(
                f"Biased's share must be below 1. Got {self.share!r}: some clients must hold the "
                "other classes."
            )
        _check_whole(self, "points")
        _check_whole(self, "per_client", least=self.points)

    def biased(self, clients: int) -> Mask:
        """A mask of the biased clients."""
        return np.arange(clients) < round(self.share * clients)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        y, sizes = prepare_labels(labels, clients, rng)
        biased = self.biased(clients)
        others = len(sizes) - 1
        if not others or biased.all():
            raise InputError(
                "Biased needs at least two classes and a client that is not biased. Got "
                f"{len(sizes)} classes and {np.count_nonzero(~biased)} such clients: lower share, "
                "or use other labels."
            )
        held = one_class_each(np.arange(clients) % others + 1, len(sizes))
        held[biased] = False
        number = self.per_client or largest_unshared(sizes, held, "per_client", self.points)
        counts = number * held
        counts[biased, 0] = self.points
        drawn, few = allocate(y, counts, rng).rows, np.count_nonzero(biased) * self.points
        repeated = drawn[:few].reshape(-1, self.points)[:, np.arange(number) % self.points]
        return Shards(
            np.concatenate([repeated.ravel(), drawn[few:]]), np.arange(clients + 1) * number
        )


@dataclass(frozen=True)
class Random:
    """Every client holds random classes, and a random number of examples of each (Sec. 8.3).

    The number of classes and the numbers of examples are drawn uniformly.

    Attributes:
        least: the smallest number of examples of a class that a client holds.
        most: the largest number of examples of a class that a client holds.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.Random(most=2)(labels, 5, np.random.default_rng(0))
        >>> np.count_nonzero(cafe.data.class_counts(labels, shards), axis=1).tolist()
        [9, 7, 6, 3, 4]
    """

    least: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        _check_range(self)

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        y, sizes = prepare_labels(labels, clients, rng)
        number = rng.integers(1, len(sizes), size=(clients, 1), endpoint=True)
        held = shuffled_classes(len(sizes), clients, rng) < number
        return allocate(y, random_counts(self.least, self.most, sizes, held, rng), rng)


@dataclass(frozen=True)
class Dirichlet:
    """Each class is distributed over the clients in shares from a Dirichlet distribution.

    Every example is held by exactly one client. A client with too few examples then gets single
    examples from the client with the most, of that client's most frequent class.

    Attributes:
        alpha: the parameter of the distribution; the smaller, the fewer clients hold most of a
            class.
        least: the smallest number of examples of a client.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.Dirichlet(alpha=0.1)(labels, 5, np.random.default_rng(0))
        >>> int(shards.counts.sum()), bool(shards.counts.min() >= 1)
        (100, True)
    """

    alpha: float = 0.5
    least: int = 1

    def __post_init__(self) -> None:
        _check_alpha(self)
        _check_whole(self, "least")

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        y, sizes = prepare_labels(labels, clients, rng)
        _check_enough(self, len(y), clients, self.least)
        shares = rng.dirichlet(np.full(clients, self.alpha), size=len(sizes))
        counts = rng.multinomial(sizes, shares).T.astype(np.int64)
        fill_up(counts, self.least)
        return allocate(y, counts, rng)


@dataclass(frozen=True)
class Quantity:
    """Clients hold random examples of all classes, but different numbers of them.

    Every example is held by exactly one client. Each client has ``least`` examples; the others are
    distributed in shares from a Dirichlet distribution.

    Attributes:
        alpha: the parameter of the distribution; the smaller, the fewer clients hold most of the
            examples.
        least: the smallest number of examples of a client.

    Example:
        >>> import cafe, numpy as np
        >>> labels = np.arange(100) % 10
        >>> shards = cafe.data.Quantity(alpha=1.0, least=5)(labels, 5, np.random.default_rng(0))
        >>> int(shards.counts.sum()), bool(shards.counts.min() >= 5)
        (100, True)
    """

    alpha: float = 1.0
    least: int = 1

    def __post_init__(self) -> None:
        _check_alpha(self)
        _check_whole(self, "least")

    def __call__(self, labels: ArrayLike, clients: int, rng: np.random.Generator) -> Shards:
        y, _ = prepare_labels(_one_class(labels), clients, rng)
        _check_enough(self, len(y), clients, self.least)
        shares = rng.dirichlet(np.full(clients, self.alpha))
        counts = self.least + rng.multinomial(len(y) - self.least * clients, shares)
        return allocate(y, counts[:, np.newaxis], rng)


PARTITIONS: dict[str, type[Any]] = {
    name.lower(): found
    for name, found in list(globals().items())
    if isinstance(found, type) and is_dataclass(found) and found.__module__ == __name__
}


def _one_class(labels: ArrayLike) -> NDArray[np.int64]:
    """The same class for all examples, which may have several labels each."""
    return np.zeros(np.shape(labels)[:1], dtype=np.int64)


def _check_whole(partition: Partition, name: str, least: int = 1) -> None:
    value = getattr(partition, name)
    if value is not None or getattr(type(partition), name) is not None:  # the default may be None
        check_whole(f"{type(partition).__name__}'s {name}", value, least)


def _check_range(partition: Single | Random) -> None:
    _check_whole(partition, "least")
    _check_whole(partition, "most", least=partition.least)


def _check_alpha(partition: Dirichlet | Quantity) -> None:
    what = f"{type(partition).__name__}'s alpha"
    if check_positive(what, partition.alpha) > MOST_ALPHA:
        raise InputError(
            f"{what} must be at most {MOST_ALPHA:g}. Got {partition.alpha!r}. With 0.1 the shares "
            "are uneven, with 100 nearly even."
        )


def _check_enough(partition: Partition, examples: int, clients: int, least: int) -> None:
    if least * clients > examples:
        raise InputError(
            f"{type(partition).__name__} gives every client at least {least} of the {examples} "
            f"labelled examples. {clients} clients need {least * clients}: use fewer clients, or a "
            "lower least."
        )
