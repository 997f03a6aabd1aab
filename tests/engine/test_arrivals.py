"""When waits end, and which reports they collect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.engine.arrivals import Arrivals, end_of_wait
from cafe.rounds import Wait
from cafe.rounds.jobs import Running
from cafe.rounds.ledger import Ledger, LedgerColumns


def jobs(*arrivals: float, first: int = 0) -> Running:
    n = len(arrivals)
    columns = {name: np.resize(column, n) for name, column in vars(Running.empty()).items()}
    clients = {"client": np.arange(first, first + n), "arrival": np.array(arrivals)}
    return replace(Running.empty(), **columns | clients)


def ledger(clients: int) -> Ledger:
    return Ledger(LedgerColumns.new(np.ones(clients, dtype=np.int64)))


@pytest.mark.parametrize(
    ("wait", "end", "reported"),
    [
        (Wait(until=2.0), 2.0, [0, 1, 2]),
        (Wait(until=5.0, reports=1), 1.0, [1]),
        (Wait(until=5.0, reports=2), 2.0, [0, 1]),  # of the two at time 2, the smaller client
        (Wait(until=1.5, reports=2), 1.5, [1]),
        (Wait(until=float("inf")), float("inf"), [0, 1, 2, 3]),  # the last one never reports
    ],
)
def test_wait_ends_at_its_time_or_with_its_reports(
    wait: Wait, end: float, reported: list[int]
) -> None:
    moment, mask = end_of_wait(jobs(2.0, 1.0, 2.0, 3.0, np.inf), wait)
    assert moment == end
    assert np.flatnonzero(mask).tolist() == reported


def test_reports_of_later_invitations_come_in_order_of_time() -> None:
    arrivals, known = Arrivals(Running.empty(), jobs(3.0, 1.0)), ledger(4)
    assert arrivals.wait(Wait(reports=1), known) == 1.0
    arrivals.add(jobs(2.0, 4.0, first=2))
    assert arrivals.repeats
    assert arrivals.wait(Wait(reports=2), known) == 2.0
    assert arrivals.reported.tolist() == [False, True, True, False]
    assert arrivals.wait(Wait(until=3.5), known) == 3.5
    assert arrivals.count == 3
    assert (arrivals.invited, len(arrivals)) == (4, 4)


def test_decisions_see_no_arrival_of_the_future() -> None:
    arrivals, known = Arrivals(Running.empty(), jobs(3.0, 1.0)), ledger(2)
    arrivals.wait(Wait(until=2.0), known)
    seen, when = arrivals.look()
    assert seen.client.tolist() == [1]
    assert when.tolist() == [1.0]
    assert not hasattr(seen, "arrival")
