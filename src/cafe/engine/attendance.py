"""Which clients are present when a round opens."""

from __future__ import annotations

import numpy as np

from cafe.errors import InfeasibleError
from cafe.presence import PresenceState
from cafe.presence.changes_ahead import ChangesAhead
from cafe.rounds.ledger import Ledger

CHANGES = 20_000  # a round waits for at most this many changes of presence, plus 10 per client


def mark_absent(ledger: Ledger, presence: PresenceState) -> None:
    """Write into the ledger which clients are away now."""
    ledger.set_away(presence.away(ledger.now))


def wait_for_clients(ledger: Ledger, presence: PresenceState, quorum: int) -> None:
    """Advance the clock until at least ``quorum`` clients are present."""
    began, left = ledger.now, CHANGES + 10 * ledger.clients
    while ledger.clients - ledger.absent < quorum:
        moment, passed = _next_chance(ledger, presence, quorum, left - 1)
        left -= passed
        if not left:
            raise InfeasibleError(
                f"Round {ledger.round} needs {quorum} clients at once, but from time {began:g} to "
                f"{ledger.now:g} that many were never present. Lower the quorum."
            )
        if not moment < np.inf:
            raise InfeasibleError(
                f"Round {ledger.round} needs {quorum} clients, but no more than "
                f"{ledger.clients - ledger.absent} are ever present from time {ledger.now:g} on. "
                "Lower the quorum, or end the run earlier."
            )
        ledger.now = moment
        mark_absent(ledger, presence)


def _next_chance(
    ledger: Ledger, presence: PresenceState, quorum: int, most: int
) -> tuple[float, int]:
    """A time to look at next, and how many changes there are until then.

    Before that time there are fewer than ``quorum`` clients present. No more than ``most`` changes
    are passed at once.
    """
    if most and isinstance(presence, ChangesAhead):
        times, more = presence.changes(ledger.now)
        times = times[:most]
        if len(times):
            present = ledger.clients - ledger.absent + np.cumsum(more[:most])
            enough = np.flatnonzero(present >= quorum)
            at = int(enough[0]) if len(enough) else len(times) - 1
            return float(times[at]), at + 1
    return presence.next_change(ledger.now), 1
