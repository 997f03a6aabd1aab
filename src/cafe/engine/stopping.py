"""When a run ends."""

from __future__ import annotations

from typing import Protocol

from cafe.errors import InputError, check_positive, check_whole
from cafe.rounds.ledger import Ledger

EXACT = 1e-9  # ten rounds of length 0.1 add up to a bit less than 1, and must count as 1


class HasLedger(Protocol):
    """A run: anything with a ledger."""

    @property
    def ledger(self) -> Ledger: ...


class StoppingRule:
    """When a run ends: after a number of rounds or updates, or at a time.

    Args:
        rounds: the maximum number of rounds, including failed ones; None: no limit.
        updates: the maximum number of successful rounds; None: no limit.
        time: the run ends after the first round that closes at this time or later; None: no limit.
    """

    def __init__(self, rounds: int | None, updates: int | None, time: float | None) -> None:
        if rounds is None and updates is None and time is None:
            raise InputError(
                "At least one of rounds, updates and time is required, or the run would never end."
            )
        rounds = None if rounds is None else check_whole("rounds", rounds)
        updates = None if updates is None else check_whole("updates", updates)
        time = None if time is None else check_positive("time", time)
        self.rounds, self.updates, self.time = rounds, updates, time

    def share_done(self, run: HasLedger) -> float:
        """The share of the run that is done, by the limit that is reached first; 1 at the end."""
        ledger = run.ledger
        pairs = (
            (ledger.round, self.rounds),
            (ledger.version, self.updates),
            (ledger.now, self.time),
        )
        share = max(done / limit for done, limit in pairs if limit is not None)
        return 1.0 if 1.0 - EXACT < share < 1.0 else share
