"""Who takes part: every client's latency, availability and data size, as arrays.

Clients that are alike share a *kind*. A homogeneous federation has one kind, a federation of groups
has a few, a federation of individuals has as many kinds as clients; whatever is calculated per kind
costs accordingly.

A response time is a draw from the latency plus, where gradient steps take time, ``per_step`` for
each of them. A federation draws the first part alone; :meth:`Federation.at_steps` adds the second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError
from cafe.latency import Exponential, Latency, Various
from cafe.latency.base import Floats, to_floats
from cafe.latency.shifted import shifted
from cafe.presence import Presence

Indices = NDArray[np.intp]
MOST_CLIENTS = 10**8
MOST_STEPS = 2**53  # beyond, whole numbers are no longer exact as floats


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
        per_step: time that a client computes for each gradient step, in the latency's unit, on top
            of what the latency says; one number or one per kind.
        presence: when clients are there at all, such as :class:`cafe.presence.DayNight`; always if
            left out. ``availability`` applies to the rounds in which a client is present.
    """

    clients: int
    latency: Latency
    availability: float | Floats = 1.0
    examples: int | NDArray[np.int64] = 1
    kind: Indices | None = None
    per_step: float | Floats = 0.0
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
        object.__setattr__(self, "per_step", self._per_step())
        object.__setattr__(self, "examples", self._examples())
        if self.kind is not None:
            object.__setattr__(self, "kind", self._kind())
        elif self.kinds not in (1, self.clients):
            raise InputError(
                "latency, availability and per_step must describe one kind of client or one per "
                f"client ({self.clients}). Got {self.latency.kinds}, {np.size(self.availability)} "
                f"and {np.size(self.per_step)}."
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
        value = to_floats(self.availability)
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

    def _per_step(self) -> float | Floats:
        value = to_floats(self.per_step)
        if value is None or value.size == 0:
            raise InputError(
                f"per_step must be one number or one per kind of client. Got {self.per_step!r}."
            )
        bad = ~(np.isfinite(value) & (value >= 0))
        if bad.any():
            raise InputError(
                "per_step is the time that a gradient step takes: not negative, and finite. "
                f"Got {value.flat[int(np.argmax(bad))]:g}. Give 0 where steps take no time."
            )
        known = max(self.latency.kinds, np.size(self.availability))
        if value.ndim > 1 or (value.ndim and known not in (1, value.size)):
            raise InputError(
                f"per_step must be one number or one per kind of client ({known}). "
                f"Got {value.size}."
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
            per_step=_joined([np.broadcast_to(g.per_step, g.kinds) for g in groups]),
        )

    @property
    def kinds(self) -> int:
        """How many kinds of client there are."""
        return max(self.latency.kinds, np.size(self.availability), np.size(self.per_step))

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
        kinds, per_step = found[0].astype(np.intp), self.per_step
        return replace(
            self,
            latency=_spread(self.latency, self.kinds).take(kinds),
            availability=np.broadcast_to(self.availability, (self.kinds,))[kinds] * found[1],
            kind=kind.reshape(-1),
            per_step=per_step[kinds] if isinstance(per_step, np.ndarray) else per_step,
            presence=None,
        )

    def by_client(self, by_kind: ArrayLike) -> Floats:
        """One value per kind spread to one value per client."""
        values = np.broadcast_to(np.asarray(by_kind, dtype=float), (self.kinds,))
        if self.kind is not None:
            return values[self.kind]
        return np.broadcast_to(values, (self.clients,))

    def report(self, t: float) -> Floats:
        """The probability that a client has reported by t, per kind: availability x F(t).

        The time of gradient steps does not count; :meth:`at_steps` has it.
        """
        return np.broadcast_to(self.availability * self.latency.cdf(t), (self.kinds,))

    def miss(self, t: float) -> Floats:
        """One minus :meth:`report`, accurate where that is close to 1."""
        late = self.availability * self.latency.sf(t)
        return np.broadcast_to(late + (1.0 - np.asarray(self.availability)), (self.kinds,))

    def scaled(self, factor: float) -> Federation:
        """The same clients, ``factor`` times as slow."""
        latency = self.latency.scaled(factor)
        if not self.has_step_time:
            return replace(self, latency=latency)
        with np.errstate(over="ignore"):  # refused as not finite
            return replace(self, latency=latency, per_step=np.multiply(self.per_step, factor))

    @cached_property
    def has_step_time(self) -> bool:
        """Whether a gradient step takes time on any client."""
        return bool(np.any(np.greater(self.per_step, 0)))

    def step_time(self, clients: Indices) -> Floats:
        """The time of one gradient step on each of some clients."""
        if np.size(self.per_step) == 1:
            return np.broadcast_to(np.ravel(self.per_step), (len(clients),))
        by_kind = np.asarray(self.per_step)
        return by_kind[clients if self.kind is None else self.kind[clients]]

    def at_steps(self, steps: int) -> Federation:
        """The same clients taking ``steps`` gradient steps a round, their time in the latency.

        Its latency is that of the whole response time, and its ``per_step`` is 0. Where steps take
        no time it is this federation.
        """
        check_steps(steps)
        if not self.has_step_time:
            return self
        with np.errstate(over="ignore"):
            added = np.multiply(self.per_step, float(steps))
        if not np.all(np.isfinite(added)):
            raise InputError(
                f"The time of {steps} steps must be finite. Got {np.max(self.per_step):g} for each "
                "of them, which is too much to multiply. Choose another unit of time."
            )
        return replace(self, latency=shifted(self.latency, added), per_step=0.0)

    def sample(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Response times, a row per round and a column per client; infinite where one is absent.

        The time of gradient steps is not in them; :meth:`at_steps` has it.
        """
        return self._draw(rng, (rounds,), None)

    def draw(self, rng: np.random.Generator, clients: Indices) -> Floats:
        """One response time for each of some clients, steps not counted; infinite if absent."""
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
            share = self.availability
            if isinstance(share, np.ndarray):
                share = self.by_client(share) if clients is None else share[self._kinds_of(clients)]
            times[rng.random(shape) >= share] = np.inf
        return times

    @cached_property
    def _some_absent(self) -> bool:
        return bool(np.any(np.less(self.availability, 1)))

    @cached_property
    def _ordered(self) -> tuple[Indices | None, Latency]:
        return self._in_order(np.arange(self.clients))

    def _kinds_of(self, clients: Indices) -> Indices:
        """Some clients' kinds, at a cost that does not depend on how many there are in all."""
        if self.kind is not None:
            return self.kind[clients]
        return np.zeros(len(clients), dtype=np.intp) if self.kinds == 1 else clients

    def _in_order(self, clients: Indices) -> tuple[Indices | None, Latency]:
        """The clients' latency with equal kinds side by side, and where each client went."""
        if self.latency.kinds == 1:
            return None, self.latency
        kinds = self._kinds_of(clients)
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


def check_steps(steps: int) -> None:
    """Refuse a number of gradient steps that is not a whole number, 1 or more."""
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
    if not whole or not 1 <= steps <= MOST_STEPS:
        raise InputError(
            f"steps must be a whole number from 1 to 2^53. Got {steps!r}: a client that takes part "
            "in a round takes at least one gradient step."
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


def _joined(parts: list[Floats]) -> float | Floats:
    """One number where all are equal, else the parts one after another."""
    joined = np.concatenate(parts)
    return float(joined[0]) if np.all(joined == joined[0]) else joined


def _first_bad(share: Floats) -> str:
    return f"{share.flat[int(np.argmin((share > 0) & (share <= 1)))]:g}"
