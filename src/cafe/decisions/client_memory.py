"""Numbers for each client in ``ledger.memory``, also of clients that joined later."""

from __future__ import annotations

import numpy as np

from cafe.decisions.choose import response_times
from cafe.latency.base import Floats
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger

TOTAL, COUNT = 0, 1  # the rows of a memory of response times: their sum and their number


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


def add_response_times(ledger: Ledger, reports: Reports) -> Floats:
    """A copy of ``ledger.memory`` to which the response times of reports are added.

    Its rows are the sum and the number of each client's response times.

    Args:
        ledger: what the server knows.
        reports: reports, at most one of each client.
    """
    memory = client_memory(ledger, 2)
    memory[TOTAL, reports.client] += response_times(reports)
    memory[COUNT, reports.client] += 1
    return memory
