"""Numbers for each client in ``ledger.memory``, also of clients that joined later."""

from __future__ import annotations

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds.ledger import Ledger


def client_memory(ledger: Ledger, rows: int) -> Floats:
    """A copy of ``ledger.memory`` that has this many rows, and a column for each client.

    It has zeros before the first merge, and for clients that joined a live run since the last one.

    Example:
        >>> import numpy as np
        >>> from cafe.decisions.client_memory import client_memory
        >>> from cafe.rounds import Ledger
        >>> ledger = Ledger.new(np.ones(3))
        >>> ledger.memory = np.array([[4.0, 5.0]])
        >>> client_memory(ledger, rows=1)
        array([[4., 5., 0.]])
    """
    found = np.zeros((rows, ledger.clients))
    if ledger.memory is not None:
        found[:, : ledger.memory.shape[-1]] = ledger.memory
    return found
