"""A federation: the latency, availability and number of examples of each client, as arrays.

Equal clients share a *kind*. A homogeneous federation has one kind, a federation of groups has a
few, and a federation of individuals has as many kinds as clients. The cost of a calculation grows
with the number of kinds.

A response time is a draw from the latency plus ``per_step`` for each gradient step. The methods of
a federation draw the first part only; :meth:`Federation.at_steps` adds the second to the latency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError
from cafe.evidence import Evidence, joined_evidence
from cafe.federation_checks import (
    check_availability,
    check_clients,
    check_evidence,
    check_examples,
    check_kind,
    check_per_step,
    check_presence,
    check_steps,
)
from cafe.keywords import explain_keywords
from cafe.latency import Exponential, Latency, Various
from cafe.latency.base import Floats
from cafe.latency.shifted import shifted
from cafe.presence import Presence
from cafe.presence.part import PartOfPresence

Indices = NDArray[np.intp]


@explain_keywords
@dataclass(frozen=True, eq=False)
class Federation:
    """N clients with their latencies. The paper's setting is 100 clients with Exponential(1.0).

    Attributes:
        clients: the number of clients, the paper's N.
        latency: of one kind of client, or of one kind per client (parameter arrays of length N), or
            of the kinds that ``kind`` refers to.
        availability: the probability that a client takes part in a round; one number or one per
            kind.
        examples: the number of training examples of a client; one number or one per client.
        kind: the kind of each client. Left out if there is one kind, or one per client.
        per_step: the time that a client computes for each gradient step, in the latency's unit, in
            addition to the latency; one number or one per kind.
        presence: when clients are connected, such as :class:`cafe.presence.DayNight`; always if
            left out. ``availability`` applies to the rounds in which a client is present.
        evidence: the observations behind a fitted federation; None if nothing was fitted.

    Example:
        >>> from cafe import Exponential, Federation
        >>> Federation(clients=100, latency=Exponential(rate=1.0), availability=0.9)
        Federation(100 clients of 1 kind, Exponential)
        >>> Federation.exponential([0.5, 1.0, 2.0])
        Federation(3 clients of 3 kinds, Exponential)
    """

    clients: int
    latency: Latency
    availability: float | Floats = 1.0
    examples: int | NDArray[np.int64] = 1
    kind: Indices | None = None
    per_step: float | Floats = 0.0
    presence: Presence | None = None
    evidence: Evidence | None = None

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
        availability = check_availability(self.availability, self.latency.kinds)
        known = max(self.latency.kinds, np.size(availability))
        object.__setattr__(self, "availability", availability)
        object.__setattr__(self, "per_step", check_per_step(self.per_step, known))
        object.__setattr__(self, "examples", check_examples(self.examples, self.clients))
        if self.kind is not None:
            object.__setattr__(self, "kind", check_kind(self.kind, self.clients, self.kinds))
        elif self.kinds not in (1, self.clients):
            raise InputError(
                "latency, availability and per_step must describe one kind of client or one per "
                f"client ({self.clients}). Got {self.latency.kinds}, {np.size(self.availability)} "
                f"and {np.size(self.per_step)}."
            )
        if self.presence is not None:
            check_presence(self.presence, self.clients)
        if self.evidence is not None:
            check_evidence(self.evidence, self.clients)

    @classmethod
    def exponential(cls, rates: ArrayLike, availability: ArrayLike | None = None) -> Federation:
        """A federation with exponential response times, one client per rate.

        Args:
            rates: the rate of each client.
            availability: one number, or one per client; 1 if left out.
        """
        latency = Exponential(np.atleast_1d(rates))
        share = np.asarray(1.0 if availability is None else availability)
        return cls(latency.kinds, latency, share)

    @classmethod
    def join(cls, *groups: Federation) -> Federation:
        """Join federations: the clients of the first, then those of the second, and so on."""
        if not groups:
            raise InputError("Federation.join needs at least one federation. Got none.")
        if any(g.presence is not None for g in groups):
            raise InputError(
                "Federations to join must not have a presence, which belongs to the whole "
                "federation. Got one: join the federations without it, and give the presence to "
                "the joined federation."
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
            evidence=joined_evidence(groups, cls.join),
        )

    def take(self, clients: Indices) -> Federation:
        """A federation of some of the clients, in the given order, without the evidence.

        A presence stays that of the whole federation: its other clients are not asked.
        """
        index = np.asarray(clients, dtype=np.intp)
        presence = self.presence
        if presence is not None:
            presence = PartOfPresence(presence, self.clients, index)
        known, kind = np.unique(self._kinds_of(index), return_inverse=True)
        part = self
        if len(known) < self.kinds:
            part = replace(
                self,
                clients=len(known),
                latency=_spread(self.latency, self.kinds).take(known),
                availability=np.broadcast_to(self.availability, self.kinds)[known],
                per_step=np.broadcast_to(self.per_step, self.kinds)[known],
                examples=1,
                kind=None,
                presence=None,
                evidence=None,
            )
        return replace(
            part,
            clients=len(index),
            examples=np.broadcast_to(self.examples, self.clients)[index],
            kind=kind.reshape(-1) if len(known) > 1 else None,
            presence=presence,
            evidence=None,
        )

    @property
    def kinds(self) -> int:
        """The number of kinds of client."""
        return max(self.latency.kinds, np.size(self.availability), np.size(self.per_step))

    @cached_property
    def number(self) -> Floats:
        """The number of clients of each kind, as floats because they are used as weights."""
        if self.kind is not None:
            return np.bincount(self.kind, minlength=self.kinds).astype(float)
        return np.full(self.kinds, float(self.clients // self.kinds))

    @property
    def kind_of_client(self) -> Indices:
        """The kind of each client."""
        if self.kind is not None:
            return self.kind
        if self.kinds == 1:
            return np.zeros(self.clients, dtype=np.intp)
        return np.arange(self.clients, dtype=np.intp)

    @cached_property
    def steady(self) -> Federation:
        """The federation with its presence replaced by the long-run share of time.

        The availability is multiplied by the share. Clients of one kind with different shares
        become clients of different kinds. Without a presence it is this federation itself.
        """
        if self.presence is None:
            return self
        share = self.presence.long_run(self.clients)
        present, evidence = self.presence, self.evidence
        if evidence is not None:
            evidence = evidence.changed(lambda other: replace(other, presence=present).steady)
        if not np.ndim(share):
            return replace(
                self,
                availability=np.multiply(self.availability, share),
                presence=None,
                evidence=evidence,
            )
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
            evidence=evidence,
        )

    def by_client(self, by_kind: ArrayLike) -> Floats:
        """Expand one value per kind to one value per client."""
        values = np.broadcast_to(np.asarray(by_kind, dtype=float), (self.kinds,))
        if self.kind is not None:
            return values[self.kind]
        return np.broadcast_to(values, (self.clients,))

    def report(self, t: float) -> Floats:
        """The probability that a client has reported by t, per kind: availability x F(t).

        Without the time of gradient steps; see :meth:`at_steps`.
        """
        return np.broadcast_to(self.availability * self.latency.cdf(t), (self.kinds,))

    def miss(self, t: float) -> Floats:
        """1 - :meth:`report`, accurate even if :meth:`report` is close to 1."""
        late = self.availability * self.latency.sf(t)
        return np.broadcast_to(late + (1.0 - np.asarray(self.availability)), (self.kinds,))

    def scaled(self, factor: float) -> Federation:
        """A copy with clients that are ``factor`` times as slow."""
        latency, evidence = self.latency.scaled(factor), self.evidence
        if evidence is not None:
            evidence = evidence.changed(
                lambda other: other.scaled(factor), longest=evidence.longest * factor
            )
        if not self.has_step_time:
            return replace(self, latency=latency, evidence=evidence)
        with np.errstate(over="ignore"):  # an infinite product raises an error below
            pace = np.multiply(self.per_step, factor)
            return replace(self, latency=latency, per_step=pace, evidence=evidence)

    @cached_property
    def has_step_time(self) -> bool:
        """Whether a gradient step takes time on any client."""
        return bool(np.any(np.greater(self.per_step, 0)))

    def step_time(self, clients: Indices) -> Floats:
        """The time of one gradient step on each of these clients."""
        if np.size(self.per_step) == 1:
            return np.broadcast_to(np.ravel(self.per_step), (len(clients),))
        by_kind = np.asarray(self.per_step)
        return by_kind[clients if self.kind is None else self.kind[clients]]

    def at_steps(self, steps: int) -> Federation:
        """A copy in which the time of ``steps`` gradient steps is part of the latency.

        Its latency is that of the whole response time, and its ``per_step`` is 0. If steps take no
        time, it is this federation itself.
        """
        check_steps(steps)
        if not self.has_step_time:
            return self
        with np.errstate(over="ignore"):
            added = np.multiply(self.per_step, float(steps))
        if not np.all(np.isfinite(added)):
            raise InputError(
                f"The time of {steps} steps must be finite. Got {np.max(self.per_step):g} for each "
                "step: the product overflows. Choose another unit of time."
            )
        evidence = self.evidence
        if evidence is not None:
            # The alternatives describe the latency only: they get the same time per step.
            evidence = evidence.changed(
                lambda other: replace(other, per_step=self._pace_of(other)).at_steps(steps),
                longest=evidence.longest + float(np.min(added)),
            )
        return replace(self, latency=shifted(self.latency, added), per_step=0.0, evidence=evidence)

    def _pace_of(self, other: Federation) -> float | Floats:
        """The time per step for another federation of the same clients."""
        if not isinstance(self.per_step, np.ndarray) or other.kind is not None:
            return self.per_step
        return self.by_client(self.per_step)

    def sample(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Draw response times: one row per round, one column per client; infinite if absent.

        Without the time of gradient steps; see :meth:`at_steps`.
        """
        return self._draw(rng, (rounds,), None)

    def draw(self, rng: np.random.Generator, clients: Indices) -> Floats:
        """Draw one response time for each of these clients, without steps; infinite if absent."""
        if not len(clients):
            return np.empty(0)
        return self._draw(rng, (), None if len(clients) == self.clients else clients)

    def _draw(
        self, rng: np.random.Generator, lead: tuple[int, ...], clients: Indices | None
    ) -> Floats:
        """Draw response times with the clients (all if None) on the last axis."""
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
        """The kinds of these clients, at a cost independent of the number of all clients."""
        if self.kind is not None:
            return self.kind[clients]
        return np.zeros(len(clients), dtype=np.intp) if self.kinds == 1 else clients

    def _in_order(self, clients: Indices) -> tuple[Indices | None, Latency]:
        """The order of the clients by kind, and their latency in that order."""
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


def total(number: Floats, by_kind: Floats) -> float:
    """The sum over all clients of a value per kind.

    Not a BLAS product: its threads stall on long vectors if a core is busy, and pairwise summation
    keeps more digits.
    """
    with np.errstate(over="ignore"):  # a sum that overflows is infinite
        return float(np.sum(number * by_kind))


def _spread(latency: Latency, kinds: int) -> Latency:
    """The latency repeated to ``kinds`` kinds."""
    return latency if latency.kinds == kinds else latency.take(np.zeros(kinds, dtype=np.intp))


def _joined(parts: list[Floats]) -> float | Floats:
    """One number if all are equal, else the concatenated parts."""
    joined = np.concatenate(parts)
    return float(joined[0]) if np.all(joined == joined[0]) else joined
