"""Ledgers whose numbers a test chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.rounds import Ledger
from cafe.rounds.ledger import LedgerColumns


def ledger_of(clients: int, *, examples: Any = 10, **given: Any) -> Ledger:
    """A ledger of some clients; other keywords are its attributes, or columns."""
    columns = LedgerColumns.new(np.full(clients, 1) * examples)
    for name in ("last_start", "last_round", "merged", "busy", "away", "local"):
        if name in given:
            getattr(columns, name)[:] = given.pop(name)
    ledger = Ledger(columns)
    ledger.working = int(columns.busy.sum())
    for name, value in given.items():
        setattr(ledger, name, value)
    return ledger
