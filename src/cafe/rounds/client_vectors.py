"""Vectors that clients add to their gradients, and parameters that clients leave as they are.

SCAFFOLD's control variates are such vectors; adaptive parameter freezing fixes parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.federation import Indices
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Mask, Whole

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class JobVectors:
    """What the jobs of one invitation use: what held when they started.

    Attributes:
        common: what every client adds to its gradients; None: nothing.
        own: what single clients add besides, by client.
        frozen: which parameters no client moves; None: all may move.
    """

    common: Vector | None = None
    own: Mapping[int, Vector] = field(default_factory=dict)
    frozen: Mask | None = None

    def offset(self, client: int) -> Vector | None:
        """What a client adds to its gradients in all; None: nothing."""
        own = self.own.get(client)
        if own is None or self.common is None:
            return self.common if own is None else own
        return self.common + own

    def count(self, clients: Indices) -> int:
        """How many of some clients add anything."""
        if self.common is not None:
            return len(clients)
        return sum(client in self.own for client in clients.tolist())


_NOTHING = JobVectors()


@dataclass(eq=False)
class ClientVectors:
    """What holds now, and what jobs that may still be merged started with.

    Vectors are stored once. Jobs refer to them, and nobody writes to them.

    Attributes:
        common: what every client adds to its gradients.
        own: what single clients add besides, by client.
        frozen: which parameters no client moves.
        begun: what the jobs of an invitation use, by its number, where that is anything.
        used: whether there is any of these.
    """

    common: Vector | None = None
    own: dict[int, Vector] = field(default_factory=dict)
    frozen: Mask | None = None
    begun: dict[int, JobVectors] = field(default_factory=dict)
    used: bool = False

    def begin(self, invitation: int, clients: Indices) -> JobVectors:
        """Note what the jobs of an invitation use."""
        own = {k: self.own[k] for k in clients.tolist() if k in self.own} if self.own else {}
        self.begun[invitation] = found = JobVectors(self.common, own, self.frozen)
        return found

    def adopt(self, merge: Merge, clients: Indices) -> None:
        """Let what a merge answered hold from now on; ``clients`` are those of its reports."""
        if merge.offset is not None:
            for client, row in zip(clients.tolist(), merge.offset, strict=True):
                self.own[client] = _kept(row)  # alone: the other rows need not stay in memory
        if merge.common is not None:
            self.common = _kept(merge.common)
        if merge.frozen is not None:
            self.frozen = _kept(merge.frozen)
        self.used = bool(self.own) or self.common is not None or self.frozen is not None

    def used_by(self, invitation: int) -> JobVectors:
        """What the jobs of an invitation use."""
        return self.begun.get(invitation, _NOTHING)

    def offsets(self, clients: Indices, invitations: Whole, parameters: int) -> Vector:
        """What each of some jobs added to its gradients, a row per job; 0 where nothing."""
        rows = np.zeros((len(clients), parameters), dtype=np.float32)
        pairs = zip(clients.tolist(), invitations.tolist(), strict=True)
        for row, (client, invitation) in zip(rows, pairs, strict=True):
            offset = self.used_by(invitation).offset(client)
            if offset is not None:
                row[:] = offset
        return rows

    def common_or_zeros(self, parameters: int) -> Vector:
        """What every client adds now; zeros where nothing."""
        return np.zeros(parameters, dtype=np.float32) if self.common is None else self.common

    def forget(self, needed: Iterable[int]) -> None:
        """Keep what the jobs of these invitations use, and no others."""
        if self.begun:
            wanted = set(needed)
            self.begun = {n: found for n, found in self.begun.items() if n in wanted}

    def save(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """As arrays, each vector once, and as values for JSON that refer to them."""
        places: dict[int, int] = {}
        arrays: dict[str, NDArray[Any]] = {}

        def place(vector: NDArray[Any] | None) -> int | None:
            if vector is None:
                return None
            if id(vector) not in places:
                places[id(vector)] = len(places)
                arrays[f"vector.{places[id(vector)]}"] = vector
            return places[id(vector)]

        def part(found: ClientVectors | JobVectors) -> dict[str, Any]:
            own = [(client, place(vector)) for client, vector in found.own.items()]
            return {"common": place(found.common), "own": own, "frozen": place(found.frozen)}

        return arrays, {**part(self), "begun": [(n, part(v)) for n, v in self.begun.items()]}

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]], saved: Mapping[str, Any]) -> ClientVectors:
        """What :meth:`save` has saved."""
        loaded: dict[int, NDArray[Any]] = {}

        def vector(place: int | None) -> NDArray[Any] | None:
            if place is None:
                return None
            if place not in loaded:
                loaded[place] = _kept(arrays[f"vector.{place}"])
            return loaded[place]

        def part(found: Mapping[str, Any]) -> dict[str, Any]:
            own = {client: vector(place) for client, place in found["own"]}
            return {
                "common": vector(found["common"]),
                "own": own,
                "frozen": vector(found["frozen"]),
            }

        begun = {number: JobVectors(**part(found)) for number, found in saved["begun"]}
        return cls(**part(saved), begun=begun, used=True)


def _kept(given: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody can write to."""
    copy = np.array(given)
    copy.setflags(write=False)
    return copy
