"""Who takes part: every client's latency, availability and data size, as arrays.

Clients that are alike share a *kind*. A homogeneous federation has one kind, a federation of groups
has a few, a federation of individuals has as many kinds as clients; whatever is calculated per kind
costs accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError
from cafe.latency import Exponential, Latency, Various
from cafe.latency.base import Floats, numbers
from cafe.presence import Presence

Indices = NDArray[np.intp]
MOST_CLIENTS = 10**8


@dataclass(frozen=True, eq=False)
class Federation:
    """N clients. ``Federation(clients=100, latency=Exponential(rate=1.0))`` is the paper's setting.

    Attributes:
        clients: how many, the paper's N.
        latency: of one kind of client, or of one kind per client (parameter arrays of length N), or
            of the kinds that ``kind`` points to.
        availability: the probability that a client takes part in a round at all; one number or one
            per kind.
        examples: how many training examples a client holds; one number or one per client.
        kind: which kind each client is of. Left out where there is one kind, or one per client.
        presence: when clients are there at all, such as :class:`cafe.presence.DayNight`; always if
            left out. ``availability`` applies to the rounds in which a client is present.
    """

    clients: int
    latency: Latency
    availability: float | Floats = 1.0
    examples: int | NDArray[np.int64] = 1
    kind: Indices | None = None
    presence: Presence | None = None

    def __post_init__(self) -> None:
        if isinstance(self.clients, bool) or not isinstance(self.clients, int | np.integer):
            raise InputError(f"The number of clients must be a whole number. Got {self.clients!r}.")
        check_clients(self.clients)
        if not isinstance(self.latency, Latency):
            raise InputError(
                f"latency must be one of cafe's latencies, such as cafe.Exponential(rate=1.0). "
                f"Got {self.latency!r}."
            )
        object.__setattr__(self, "clients", int(self.clients))
        object.__setattr__(self, "availability", self._availability())
        object.__setattr__(self, "examples", self._examples())
        if self.kind is not None:
            object.__setattr__(self, "kind", self._kind())
        elif self.kinds not in (1, self.clients):
            raise InputError(
                "latency and availability must describe one kind of client or one per client "
                f"({self.clients}). Got {self.latency.kinds} and {np.size(self.availability)}."
            )
        if self.presence is not None:
            self._check_presence(self.presence)

    def _check_presence(self, presence: object) -> None:
        if not isinstance(presence, Presence) or isinstance(presence, type):
            raise InputError(
                "presence must be one of cafe.presence, such as cafe.presence.DayNight(). "
                f"Got {presence!r}."
            )
        share = np.asarray(presence.long_run(self.clients))
        if share.shape not in ((), (self.clients,)) or not np.all((share > 0) & (share <= 1)):
            raise InputError(
                f"The long-run share of time that a client is present must be above 0 and at most "
                f"1, one number or one per client ({self.clients}). Got another from {presence!r}."
            )

    def _availability(self) -> float | Floats:
        value = numbers(self.availability)
        if value is None or value.size == 0:
            raise InputError(
                "Availability must be one number or one per kind of client. "
                f"Got {self.availability!r}."
            )
        if not np.all((value > 0) & (value <= 1)):
            raise InputError(
                f"Availability is a probability above 0 and at most 1. Got {_first_bad(value)}: "
                "a client that never takes part is not a client."
            )
        if value.ndim > 1 or (value.ndim and self.latency.kinds not in (1, value.size)):
            raise InputError(
                "Availability must be one number or one per kind of client "
                f"({self.latency.kinds}). Got {value.size}."
            )
        value.setflags(write=False)
        return value if value.ndim else float(value)

    def _examples(self) -> int | NDArray[np.int64]:
        value = np.array(self.examples)
        if not np.issubdtype(value.dtype, np.integer) or np.any(value < 0):
            raise InputError(
                "A client's examples must be a whole number, not negative. "
                f"Got {self.examples if value.ndim == 0 else 'others among them'}."
            )
        if value.ndim and value.shape != (self.clients,):
            raise InputError(
                f"examples must be one number or one per client ({self.clients}). Got {value.size}."
            )
        value = value.astype(np.int64)
        value.setflags(write=False)
        return value if value.ndim else int(value)

    def _kind(self) -> Indices:
        given = np.asarray(self.kind)
        whole = given.dtype.kind in "iu" and given.shape == (self.clients,)
        if not whole or np.any((given < 0) | (given >= self.kinds)):
            raise InputError(
                f"kind must give every one of the {self.clients} clients a kind "
                f"from 0 to {self.kinds - 1}."
            )
        kind = given.astype(np.intp)
        if np.bincount(kind, minlength=self.kinds).min() == 0:
            raise InputError("Every kind needs at least one client: some kind has none.")
        kind.setflags(write=False)
        return kind

    @classmethod
    def exponential(cls, rates: ArrayLike, availability: ArrayLike | None = None) -> Federation:
        """One client per rate, memoryless; with an availability for each if given."""
        latency = Exponential(np.atleast_1d(rates))
        share = np.asarray(1.0 if availability is None else availability)
        return cls(latency.kinds, latency, share)

    @classmethod
    def join(cls, *groups: Federation) -> Federation:
        """One federation out of several: the clients of the first, then those of the second, ..."""
        if not groups:
            raise InputError("A federation needs at least one group. Got none.")
        if any(g.presence is not None for g in groups):
            raise InputError(
                "A presence belongs to the whole federation, and a group that is to be joined has "
                "one: join the groups without it, and give the presence to the joined federation."
            )
        check_clients(sum(g.clients for g in groups))
        starts = np.cumsum([0, *(g.kinds for g in groups)])
        return cls(
            sum(g.clients for g in groups),
            Various([_spread(g.latency, g.kinds) for g in groups]),
            np.concatenate([np.broadcast_to(g.availability, g.kinds) for g in groups]),
            np.concatenate([np.broadcast_to(g.examples, g.clients) for g in groups]),
            np.concatenate([s + g.kind_of_client for s, g in zip(starts, groups, strict=False)]),
        )

    @property
    def kinds(self) -> int:
        """How many kinds of client there are."""
        return max(self.latency.kinds, np.size(self.availability))

    @cached_property
    def number(self) -> Floats:
        """How many clients are of each kind; floats, as they are used as weights."""
        if self.kind is not None:
            return np.bincount(self.kind, minlength=self.kinds).astype(float)
        return np.full(self.kinds, float(self.clients // self.kinds))

    @property
    def kind_of_client(self) -> Indices:
        """Every client's kind, spelled out."""
        if self.kind is not None:
            return self.kind
        if self.kinds == 1:
            return np.zeros(self.clients, dtype=np.intp)
        return np.arange(self.clients, dtype=np.intp)

    @cached_property
    def steady(self) -> Federation:
        """The federation with its presence replaced by the long-run share of time.

        The availability is multiplied with the share. Clients of one kind whose shares differ
        become clients of different kinds. A federation without a presence is its own.
        """
        if self.presence is None:
            return self
        share = self.presence.long_run(self.clients)
        if not np.ndim(share):
            return replace(self, availability=np.multiply(self.availability, share), presence=None)
        pairs = np.stack([self.kind_of_client.astype(float), np.asarray(share)])
        found, kind = np.unique(pairs, axis=1, return_inverse=True)
        kinds = found[0].astype(np.intp)
        return replace(
            self,
            latency=_spread(self.latency, self.kinds).take(kinds),
            availability=np.broadcast_to(self.availability, (self.kinds,))[kinds] * found[1],
            kind=kind.reshape(-1),
            presence=None,
        )

    def by_client(self, by_kind: ArrayLike) -> Floats:
        """One value per kind spread to one value per client."""
        values = np.broadcast_to(np.asarray(by_kind, dtype=float), (self.kinds,))
        if self.kind is not None:
            return values[self.kind]
        return np.broadcast_to(values, (self.clients,))

    def report(self, t: float) -> Floats:
        """The probability that a client has reported by t, per kind: availability x F(t)."""
        return np.broadcast_to(self.availability * self.latency.cdf(t), (self.kinds,))

    def miss(self, t: float) -> Floats:
        """One minus :meth:`report`, accurate where that is close to 1."""
        late = self.availability * self.latency.sf(t)
        return np.broadcast_to(late + (1.0 - np.asarray(self.availability)), (self.kinds,))

    def scaled(self, factor: float) -> Federation:
        """The same clients, ``factor`` times as slow."""
        return replace(self, latency=self.latency.scaled(factor))

    def sample(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Response times, a row per round and a column per client; infinite where one is absent."""
        return self._draw(rng, (rounds,), None)

    def draw(self, rng: np.random.Generator, clients: Indices) -> Floats:
        """One response time for each of some clients; infinite where one is absent."""
        if not len(clients):
            return np.empty(0)
        return self._draw(rng, (), None if len(clients) == self.clients else clients)

    def _draw(
        self, rng: np.random.Generator, lead: tuple[int, ...], clients: Indices | None
    ) -> Floats:
        """Draws for each of the clients, or for all, on the last axis."""
        order, each = self._ordered if clients is None else self._in_order(clients)
        shape = (*lead, self.clients if clients is None else len(clients))
        if order is None:
            times = each.sample(rng, shape).reshape(shape)
        else:
            times = np.empty(shape)
            times[..., order] = each.sample(rng, lead).reshape(shape)
        if self._some_absent:
            share = self.by_client(self.availability)
            times[rng.random(shape) >= (share if clients is None else share[clients])] = np.inf
        return times

    @cached_property
    def _some_absent(self) -> bool:
        return bool(np.any(np.less(self.availability, 1)))

    @cached_property
    def _ordered(self) -> tuple[Indices | None, Latency]:
        return self._in_order(np.arange(self.clients))

    def _in_order(self, clients: Indices) -> tuple[Indices | None, Latency]:
        """The clients' latency with equal kinds side by side, and where each client went."""
        if self.latency.kinds == 1:
            return None, self.latency
        kinds = self.kind_of_client[clients]
        order = np.argsort(kinds, kind="stable")
        return order, self.latency.take(kinds[order])

    def __repr__(self) -> str:
        kinds = "1 kind" if self.kinds == 1 else f"{self.kinds} kinds"
        there = "" if self.presence is None else f", presence={self.presence!r}"
        return (
            f"Federation({self.clients} clients of {kinds}, {type(self.latency).__name__}{there})"
        )


def check_clients(clients: int) -> None:
    """Refuse a number of clients that is none, or more than arrays can hold."""
    if clients < 1:
        raise InputError(f"A federation needs at least 1 client. Got {clients}.")
    if clients > MOST_CLIENTS:
        raise InputError(
            f"A federation may have at most {MOST_CLIENTS:,} clients. Got {clients:,}: "
            "their arrays would not fit in memory. Plan for a sample of them."
        )


def total(number: Floats, by_kind: Floats) -> float:
    """The sum over clients of what each kind has.

    Not a BLAS product: its threads stall on long vectors when a core is busy, and pairwise
    summation keeps more digits.
    """
    with np.errstate(over="ignore"):  # what is past all numbers is infinite
        return float(np.sum(number * by_kind))


def _spread(latency: Latency, kinds: int) -> Latency:
    """The latency with as many kinds as asked, where one description served them all."""
    return latency if latency.kinds == kinds else latency.take(np.zeros(kinds, dtype=np.intp))


def _first_bad(share: Floats) -> str:
    return f"{share.flat[int(np.argmin((share > 0) & (share <= 1)))]:g}"
