"""Every job one by one: what became of it. The books count; these records name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from cafe.engine.books import Kept, Used
from cafe.federation import Indices
from cafe.live.layout import Vector
from cafe.rounds.jobs import Mask, Running
from cafe.rounds.outcome import Fate, Outcome


@dataclass(frozen=True)
class Record:
    """A job and its fate.

    Attributes:
        client: its number in the ledger.
        name: its client's name.
        round: in which it was asked.
        version: of the global model that it goes back to.
        carried: whether it went on from a local model.
        start: when it was asked.
        arrived: when its report came; None where none was let in.
        fate: in lower case; "" while it is open.
        reason: why a report was refused, or a job lost.
        digest: of the update that was let in, the whole one where it was carried on.
        booked: the round in whose books it is.
        merged: the version of the model that it is in; None for none.
        coefficient: in that update; None for the earlier jobs of a chain, which are in the last.
        took: seconds of training, as the client says; the rest of its response time is overhead.
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

    def line(self) -> dict[str, Any]:
        """For the log."""
        return asdict(self)


def digest(update: Vector) -> str:
    """A short word that stands for an update, or a model, to the bit."""
    return hashlib.sha256(np.ascontiguousarray(update).tobytes()).hexdigest()[:16]


@dataclass(eq=False)
class Pending:
    """Jobs that have reported, are kept by the policy, and have no fate yet: a chain per client."""

    chains: dict[int, list[Record]] = field(default_factory=dict)

    def settle(
        self,
        outcome: Outcome,
        jobs: Running,
        records: Sequence[Record],
        reported: Mask,
        used: Used,
        kept_rows: Indices,
        running: Running,
        unfinished: Fate,
        refused: Mask,
        before: Kept,
        stays: Mask,
    ) -> list[Record]:
        """The records that a closed round has settled, in the order of their jobs.

        Args:
            outcome: of the round, booked.
            jobs: all that were open.
            records: one for each, without its fate.
            reported: which of them reported.
            used: what the update is made of.
            kept_rows: which jobs' reports or local models are kept.
            running: the jobs that run on.
            unfinished: the fate of jobs that were cut off.
            refused: which jobs sent what was not accepted.
            before: what clients kept before the round was booked.
            stays: by client, who keeps something after it.
        """
        settled: list[Record] = []
        coefficient = dict(
            zip([*jobs.client[used.jobs], *used.held], used.coefficient.tolist(), strict=True)
        )
        version = outcome.version - int(outcome.succeeded)

        def end(record: Record, fate: Fate, **more: Any) -> None:
            name = fate.name.lower()
            settled.append(replace(record, fate=name, booked=outcome.round, **more))

        def merged(chain: Sequence[Record], began: int, factor: float) -> None:
            fate = Fate.FRESH if began == version else Fate.STALE
            for record in chain:
                last = record is chain[-1]
                end(record, fate, merged=outcome.version, coefficient=factor if last else None)

        def dropped(client: int) -> None:
            for record in self.chains.pop(client, []):
                end(record, Fate(int(before.fate[client])))

        used_rows, keeping = set(used.jobs.tolist()), set(kept_rows.tolist())
        going_on = set(running.client.tolist())
        for row, record in enumerate(records):
            client, local = record.client, bool(jobs.local[row])
            if row in used_rows:
                chain = self.chains.pop(client, []) if local else []
                dropped(client)
                began = int(before.version[client]) if local else record.version
                merged([*chain, record], began, coefficient[client])
            elif row in keeping:
                if not local:
                    dropped(client)
                self.chains.setdefault(client, []).append(record)
            elif client in going_on and not reported[row]:
                continue
            elif reported[row]:
                end(record, Fate.OVER if outcome.succeeded else Fate.FAILED)
            elif refused[row]:
                end(record, Fate.REFUSED)
            elif np.isinf(jobs.arrival[row]):
                end(record, Fate.ABSENT if np.isinf(jobs.stop[row]) else Fate.CRASHED)
            elif jobs.arrival[row] <= outcome.closed:
                end(record, Fate.OVER)
            else:
                end(record, unfinished)
        for client in used.held.tolist():
            chain = self.chains.pop(client, [])
            merged(chain, int(before.version[client]), coefficient[client])
        for client in [*self.chains]:
            if not stays[client]:
                dropped(client)
        return settled


def counted(records: Sequence[Record]) -> Mapping[str, int]:
    """How many met each fate."""
    counts = {fate.name.lower(): 0 for fate in Fate}
    for record in records:
        counts[record.fate] += 1
    return counts
