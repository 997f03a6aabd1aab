"""Every job one by one: what became of it. The books count; these records name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cafe.live.model_layout import Vector
from cafe.rounds.jobs import Work
from cafe.rounds.outcome import Fate

REUSED = "reused"


@dataclass(frozen=True)
class JobRecord:
    """A job and its fate.

    Attributes:
        client: its number in the ledger.
        name: its client's name.
        round: in which it was asked.
        version: of the global model that it goes back to.
        carried: whether it went on from a local model.
        start: when it was asked.
        arrived: when its report came; None where none was let in.
        fate: in lower case; "" while it is open. A held report that is used again has a further
            line for each use, "reused", which is not a fate.
        reason: why a report was refused, or a job lost.
        digest: of the update that was let in, the whole one where it was carried on.
        booked: the round in whose books it is.
        merged: the version of the model that it is in; None for none.
        coefficient: in that update; None for the earlier jobs of a chain, which are in the last.
        took: seconds of training, as the client says; the rest of its response time is overhead.
        invitation: its number, by which the job is named.
        steps: gradient steps that were taken, as the client says.
        work: what it was asked to do, other than the defaults of :class:`cafe.rounds.Work`.
    """

    client: int
    name: str
    round: int
    version: int
    carried: bool
    start: float
    arrived: float | None = None
    fate: str = ""
    reason: str = ""
    digest: str = ""
    booked: int = -1
    merged: int | None = None
    coefficient: float | None = None
    took: float | None = None
    invitation: int = -1
    steps: int | None = None
    work: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        """For the log."""
        return asdict(self)


def stated(work: Work) -> dict[str, Any]:
    """The fields of a work that differ from the defaults."""
    return {name: value for name, value in vars(work).items() if value != getattr(Work, name)}


def digest(update: Vector) -> str:
    """A short word that stands for an update, or a model, to the bit."""
    return hashlib.sha256(np.ascontiguousarray(update).tobytes()).hexdigest()[:16]


def counted(records: Sequence[JobRecord]) -> Mapping[str, int]:
    """How many met each fate."""
    counts = {fate.name.lower(): 0 for fate in Fate}
    for record in records:
        if record.fate != REUSED:
            counts[record.fate] += 1
    return counts
