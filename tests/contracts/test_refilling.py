"""Clients that are invited while a round is open: when each reports, calculated by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.reference import Reference
from cafe.rounds import (
    COMMIT,
    RUN,
    Carried,
    Invitation,
    Ledger,
    Merge,
    Policy,
    Reports,
    Verdict,
    Wait,
    Waiting,
)

ENGINES = pytest.mark.parametrize("engine", [Run, Reference])


def refilling(goal: int, seen: list[Any]) -> Policy:
    """FedBuff as published, with all clients at work: a client that reports is invited again."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        if waiting.reports >= goal:
            return COMMIT
        if len(ledger.idle):
            return Invitation(ledger.idle)
        return Wait(reports=waiting.reports + 1)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        rows = (reports.client, reports.start, reports.arrived, reports.version)
        seen.append([*zip(*(column.tolist() for column in rows), strict=True)])
        return Merge(np.full(len(reports), 1.0 / goal))

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(ledger.idle)

    return Policy("refilling", invite, close, merge, lambda *_: Carried(RUN), late="keep")


@ENGINES
def test_refilled_clients_report_in_order_of_time(engine: Any) -> None:
    """Client 0 takes 1, client 1 takes 2.5: 0 reports twice before 1 does."""
    who = cafe.Federation.join(
        cafe.Federation(1, cafe.Constant(1.0)), cafe.Federation(1, cafe.Constant(2.5))
    )
    seen: list[Any] = []
    run = engine(who, refilling(2, seen))
    first, second, third = (run.step() for _ in range(3))
    assert seen == [
        [(0, 0.0, 1.0, 0), (0, 1.0, 2.0, 0)],  # twice in one round
        [(1, 0.0, 2.5, 0), (0, 2.0, 3.0, 1)],  # jobs are in the order in which they began
        [(0, 3.0, 4.0, 2), (0, 4.0, 5.0, 2)],  # client 1 began at 2.5, and reports at 5 as well
    ]
    assert [o.closed for o in (first, second, third)] == [2.0, 3.0, 5.0]
    assert (first.used, first.invited, first.reports) == (2, 3, 2)
    assert first.fates.tolist()[:2] == [2, 0]
    assert second.fates.tolist()[:2] == [1, 1]
    # After round 0, client 0's last merged job was broadcast at 1 and client 1's never: 2.
    assert first.age == ((2.0 - 1.0) + 2.0) / 2
    # After round 1 at time 3: client 0's at 2, client 1's at 0.
    assert second.age == ((3.0 - 2.0) + 3.0) / 2
    assert run.history().merged_by_client.tolist() == [5, 1]


@ENGINES
def test_ages_over_time_of_a_client_that_reports_twice(engine: Any) -> None:
    who = cafe.Federation(1, cafe.Constant(1.0))
    run = engine(who, refilling(2, []))
    run.step()
    # Its age grows from 0 to 2, and falls to 1 at the close: a mean of 1 up to time 2.
    assert run.history().age_by_client.tolist() == [1.0]
    run.step()
    # Then from 1 to 3 in two more units of time: (2 + 4) / 4.
    assert run.history().age_by_client.tolist() == [1.5]
