"""When a run ends."""

from __future__ import annotations

from typing import Protocol

from cafe.errors import InputError, check_positive, check_whole
from cafe.rounds.ledger import Ledger

EXACT = 1e-9  # ten rounds of 0.1 add up to less than 1 by rounding, and are 1 all the same


class _HasLedger(Protocol):
    @property
    def ledger(self) -> Ledger: ...


class StoppingRule:
    """When a run ends."""

    def __init__(self, rounds: int | None, updates: int | None, time: float | None) -> None:
        if rounds is None and updates is None and time is None:
            raise InputError("Say when to stop: give rounds, updates or time.")
        rounds = None if rounds is None else check_whole("rounds", rounds)
        updates = None if updates is None else check_whole("updates", updates)
        time = None if time is None else check_positive("time", time)
        self.rounds, self.updates, self.time = rounds, updates, time

    def share_done(self, run: _HasLedger) -> float:
        """The share of the nearest limit that is used up; 1 when the run is over."""
        ledger = run.ledger
        pairs = (
            (ledger.round, self.rounds),
            (ledger.version, self.updates),
            (ledger.now, self.time),
        )
        share = max(done / limit for done, limit in pairs if limit is not None)
        return 1.0 if 1.0 - EXACT < share < 1.0 else share
