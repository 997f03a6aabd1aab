"""Jobs whose fate is not known yet, and what a closed round makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cafe.engine.books import Kept, Used
from cafe.federation import Indices
from cafe.live.opened import Open
from cafe.live.records import Record
from cafe.rounds.jobs import Mask, Running
from cafe.rounds.outcome import Fate, Outcome


@dataclass(eq=False)
class Pending:
    """Jobs that have reported, are kept by the policy, and have no fate yet: a chain per client."""

    chains: dict[int, list[Record]] = field(default_factory=dict)

    def settle(
        self,
        outcome: Outcome,
        open_: Open,
        reported: Mask,
        used: Used,
        kept_rows: Indices,
        running: Running,
        unfinished: Fate,
        before: Kept,
        stays: Mask,
    ) -> list[Record]:
        """The records that a closed round has settled, in the order of their jobs.

        Args:
            outcome: of the round, booked.
            open_: its jobs, with their records without fates.
            reported: which of the jobs reported.
            used: what the update is made of.
            kept_rows: which jobs' reports or local models are kept.
            running: the jobs that run on.
            unfinished: the fate of jobs that were cut off.
            before: what clients kept before the round was booked.
            stays: by client, who keeps something after it.
        """
        settled: list[Record] = []
        jobs = open_.jobs
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
        for row, record in enumerate(open_.records):
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
            elif open_.refused[row]:
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
