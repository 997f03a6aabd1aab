"""Jobs whose fate is not known yet, and what a closed round makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cafe.engine.fates import JobFates, UsedReports
from cafe.live.job_records import REUSED, JobRecord
from cafe.live.open_round import OpenRound
from cafe.rounds.jobs import Mask
from cafe.rounds.outcome import OPEN, Fate, Outcome


@dataclass(eq=False)
class Pending:
    """Records of jobs that have reported and are kept by the policy.

    Attributes:
        chains: those without a fate, by client.
        held: the last record of what each client has kept and a merge has used.
    """

    chains: dict[int, list[JobRecord]] = field(default_factory=dict)
    held: dict[int, JobRecord] = field(default_factory=dict)

    def settle(
        self, outcome: Outcome, open_: OpenRound, used: UsedReports, fates: JobFates
    ) -> list[JobRecord]:
        """The records that a closed round has settled; merged ones in the order of the merge.

        Args:
            outcome: of the round, booked.
            open_: the round's jobs.
            used: what the update is made of.
            fates: those that the books gave.
        """
        written: list[JobRecord] = []
        fresh = len(used.jobs)
        by_row = dict(zip(used.jobs.tolist(), used.coefficient[:fresh].tolist(), strict=True))
        by_client = dict(zip(used.held.tolist(), used.coefficient[fresh:].tolist(), strict=True))
        earlier = {
            client: Fate(fate)
            for clients, found in fates.earlier
            for client, fate in zip(clients.tolist(), found.tolist(), strict=True)
        }

        def end(record: JobRecord, fate: Fate | str, coefficient: float | None = None) -> None:
            name = fate.name.lower() if isinstance(fate, Fate) else fate
            more: dict[str, Any] = {"fate": name, "booked": outcome.round}
            if name in _MERGED:
                more |= {"merged": outcome.version, "coefficient": coefficient}
            written.append(replace(record, **more))

        def end_chain(client: int, coefficient: float | None = None) -> None:
            chain = self.chains.pop(client, [])
            for record in chain:
                end(record, earlier[client], coefficient if record is chain[-1] else None)

        kept = set(fates.kept.tolist())
        for row, record in enumerate(open_.records):
            fate, client = int(fates.by_job[row]), record.client
            if row in by_row:
                if open_.jobs.local[row] and client in earlier:
                    end_chain(client)
                end(record, Fate(fate), by_row[row])
            elif fate != OPEN:
                end(record, Fate(fate))
        for client, coefficient in by_client.items():
            if self.chains.get(client):
                self.held[client] = self.chains[client][-1]
                end_chain(client, coefficient)
            else:
                end(self.held[client], REUSED, coefficient)
        for client in earlier:
            end_chain(client)
        for row in sorted(kept):
            record = open_.records[row]
            if fates.by_job[row] == OPEN:
                self.chains.setdefault(record.client, []).append(record)
                self.held.pop(record.client, None)
            else:
                self.held[record.client] = record
        return written

    def forget(self, keeping: Mask) -> None:
        """Forget the records of clients that keep nothing."""
        self.held = {client: record for client, record in self.held.items() if keeping[client]}


_MERGED = ("fresh", "stale", REUSED)
