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
    """What clients have kept, an entry per client: one report, a newer one takes its place.

    Attributes:
        held: whose report is offered to the next merge.
        used: in how many updates it has been.
        pending: how many jobs in it have no fate yet.
        fate: which one they will have if it is dropped.
        charge: what they will then be charged, from start to their round's close.
        spent: and in true processing time.
        start: of the last job in it.
        version: that it began from.
        round: of the last job in it.
        invitation: of the last job in it.
        steps: of all jobs in it.
        note: of the last job in it.
        arrived: when its report came.
        seconds: of training, of all jobs in it.
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
        """Nobody has kept anything."""
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
        """Give the jobs in what clients have kept their fate."""
        pending = self.pending[clients]
        if not pending.any():
            return
        fate = fate.astype(np.int64)
        np.add.at(outcome.fates, fate, pending)
        some = pending > 0
        fates.earlier.append((clients[some], fate[some]))
        self._charged(clients)

    def drop(
        self, outcome: Outcome, fates: JobFates, clients: Indices, columns: LedgerColumns
    ) -> None:
        """Discard what clients have kept: its jobs get their fate now, and are charged."""
        some = clients[self.pending[clients] > 0]
        outcome.waste += float(self.charge[some].sum())
        outcome.processing_waste += float(self.spent[some].sum())
        self.end(outcome, fates, some, self.fate[some])
        self.clear(clients, columns)

    def clear(self, clients: Indices, columns: LedgerColumns) -> None:
        """Clients keep neither a report nor a local model any more."""
        self.held[clients] = False
        columns.local[clients] = False
        self._charged(clients)

    def _charged(self, clients: Indices) -> None:
        """No job in what clients have kept is left without a fate."""
        self.pending[clients] = 0
        self.charge[clients] = 0.0
        self.spent[clients] = 0.0
