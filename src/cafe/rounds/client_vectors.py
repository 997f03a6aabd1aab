"""Vectors that clients add to their gradients, and parameters that clients do not change.

SCAFFOLD's control variates are such vectors. Adaptive parameter freezing fixes parameters.
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
    """The vectors that the jobs of one invitation use: those that applied when they started.

    Attributes:
        common: the vector that every client adds to its gradients; None if there is none.
        own: the offsets that single clients add as well, by client.
        frozen: mask of the parameters that clients do not change; None: they may change all.
    """

    common: Vector | None = None
    own: Mapping[int, Vector] = field(default_factory=dict)
    frozen: Mask | None = None

    def offset(self, client: int) -> Vector | None:
        """The sum of the vectors that a client adds to its gradients; None if there are none."""
        own = self.own.get(client)
        if own is None or self.common is None:
            return self.common if own is None else own
        return self.common + own

    def write_offset(self, client: int, row: Vector) -> None:
        """Write the sum of the vectors that a client adds into a row, without a copy; or zeros."""
        own = self.own.get(client)
        if own is not None and self.common is not None:
            np.add(self.common, own, out=row, casting="same_kind")
        elif own is not None:
            row[:] = own
        else:
            row[:] = 0.0 if self.common is None else self.common

    def count(self, clients: Indices) -> int:
        """The number of these clients that add a vector."""
        if self.common is not None:
            return len(clients)
        return sum(client in self.own for client in clients.tolist())


_NOTHING = JobVectors()


@dataclass(eq=False)
class ClientVectors:
    """The vectors that apply now, and those of earlier jobs that may still be merged.

    Each vector is stored once, read-only, and shared by the jobs that use it.

    Attributes:
        common: the vector that every client adds to its gradients; None if there is none.
        own: the offsets that single clients add as well, by client.
        frozen: mask of the parameters that clients do not change; None: they may change all.
        begun: the vectors of earlier jobs, by the number of their invitation.
    """

    common: Vector | None = None
    own: dict[int, Vector] = field(default_factory=dict)
    frozen: Mask | None = None
    begun: dict[int, JobVectors] = field(default_factory=dict)

    @property
    def used(self) -> bool:
        """Whether any vector applies now."""
        return bool(self.own) or self.common is not None or self.frozen is not None

    def begin(self, invitation: int, clients: Indices) -> JobVectors:
        """Record that the jobs of an invitation use the present vectors, and return these."""
        own = {k: self.own[k] for k in clients.tolist() if k in self.own} if self.own else {}
        self.begun[invitation] = found = JobVectors(self.common, own, self.frozen)
        return found

    def adopt(self, merge: Merge, clients: Indices) -> None:
        """Apply a merge's vectors from now on; ``clients`` are the clients of its reports."""
        if merge.offset is not None:
            for client, row in zip(clients.tolist(), merge.offset, strict=True):
                self.own[client] = _kept(
                    row
                )  # a copy of the row, so that the whole array is not kept in memory
        if merge.common is not None:
            self.common = _kept(merge.common)
        if merge.frozen is not None:
            self.frozen = _kept(merge.frozen)

    def clear(self) -> None:
        """Let no vector apply to later jobs. Earlier jobs keep theirs."""
        self.common, self.own, self.frozen = None, {}, None

    def used_by(self, invitation: int) -> JobVectors:
        """The vectors that the jobs of an invitation use."""
        return self.begun.get(invitation, _NOTHING)

    def offsets(self, clients: Indices, invitations: Whole, parameters: int) -> Vector:
        """The sum of the vectors that each job added to its gradients, a row per job."""
        rows = np.empty((len(clients), parameters), dtype=np.float32)
        pairs = zip(clients.tolist(), invitations.tolist(), strict=True)
        for row, (client, invitation) in zip(rows, pairs, strict=True):
            self.used_by(invitation).write_offset(client, row)
        return rows

    def common_or_zeros(self, parameters: int) -> Vector:
        """The common vector; zeros if there is none."""
        return np.zeros(parameters, dtype=np.float32) if self.common is None else self.common

    def forget(self, needed: Iterable[int]) -> None:
        """Keep the vectors of the jobs of these invitations, and drop those of all others."""
        if self.begun:
            wanted = set(needed)
            self.begun = {n: found for n, found in self.begun.items() if n in wanted}

    def save(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The vectors as arrays, each once, and as a JSON value that refers to them by number."""
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
        """Recreate the vectors from what :meth:`save` returned."""
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
        return cls(**part(saved), begun=begun)


def _kept(given: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy."""
    copy = np.array(given)
    copy.setflags(write=False)
    return copy
