"""Reports and local models that clients keep from one round to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.engine.fates import JobFates
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.jobs import Mask, Whole
from cafe.rounds.ledger import LedgerColumns
from cafe.rounds.outcome import Outcome


@dataclass(eq=False)
class KeptReports:
    """What clients keep, an entry per client. A client keeps one report: a newer one replaces it.

    A kept report contains the work of one job, or of several if its client continued from a local
    model.

    Attributes:
        held: whether the report is offered to the next merge.
        used: the number of updates that the report has been in.
        pending: how many jobs in the report have no fate yet.
        fate: the fate of these jobs if the report is dropped.
        charge: the waste of these jobs if the report is dropped, each from its start to the close
            of its round.
        spent: the processing waste of these jobs if the report is dropped.
        start: when the last job in the report started.
        version: the version of the model that the first job in the report began from.
        round: the round of the last job in the report.
        invitation: the invitation of the last job in the report.
        steps: the steps of all jobs in the report.
        note: the note of the last job in the report.
        arrived: when the report arrived.
        seconds: the seconds of training of all jobs in the report.
    """

    held: Mask
    used: Whole
    pending: Whole
    fate: Whole
    charge: Floats
    spent: Floats
    start: Floats
    version: Whole
    round: Whole
    invitation: Whole
    steps: Whole
    note: Floats
    arrived: Floats
    seconds: Floats

    @classmethod
    def none(cls, clients: int) -> KeptReports:
        """The columns of clients that keep nothing."""
        whole = ("used", "pending", "fate", "version", "round", "invitation", "steps")
        times = ("charge", "spent", "start", "note", "arrived", "seconds")
        columns: dict[str, Any] = {name: np.zeros(clients, dtype=np.int64) for name in whole}
        columns |= {name: np.zeros(clients) for name in times}
        return cls(held=np.zeros(clients, dtype=bool), **columns)

    def then(self, others: KeptReports) -> KeptReports:
        """These clients, followed by others."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return KeptReports(*(np.concatenate(pair) for pair in pairs))

    def end(self, outcome: Outcome, fates: JobFates, clients: Indices, fate: NDArray[Any]) -> None:
        """Give the pending jobs in some clients' kept reports their fate."""
        pending = self.pending[clients]
        if not pending.any():
            return
        fate = fate.astype(np.int64)
        np.add.at(outcome.fates, fate, pending)
        np.add.at(outcome.work_by_fate, fate, self.spent[clients])
        some = pending > 0
        fates.earlier.append((clients[some], fate[some]))
        self._charged(clients)

    def drop(
        self, outcome: Outcome, fates: JobFates, clients: Indices, columns: LedgerColumns
    ) -> None:
        """Discard what clients keep. The pending jobs in it get their fate, and count as waste."""
        some = clients[self.pending[clients] > 0]
        outcome.waste += float(self.charge[some].sum())
        outcome.processing_waste += float(self.spent[some].sum())
        self.end(outcome, fates, some, self.fate[some])
        self.clear(clients, columns)

    def clear(self, clients: Indices, columns: LedgerColumns) -> None:
        """Remove what clients keep, without a fate for the jobs in it."""
        self.held[clients] = False
        columns.local[clients] = False
        self._charged(clients)

    def _charged(self, clients: Indices) -> None:
        self.pending[clients] = 0
        self.charge[clients] = 0.0
        self.spent[clients] = 0.0
