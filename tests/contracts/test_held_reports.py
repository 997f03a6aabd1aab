"""Reports that are held for as long as the policy says: what merges see, fates, waste."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.reference import Reference
from cafe.rounds import (
    COMMIT,
    DROP,
    HOLD,
    Carried,
    Closed,
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
WHO = cafe.Federation(2, cafe.Constant(1.0))


def table(seen: list[Any], use: bool = True, until: int = 10**9) -> Policy:
    """Client 0 is invited once, client 1 in every later round; all reports are held."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(np.array([0 if ledger.round == 0 else 1]))

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        return COMMIT if waiting.reports else Wait(reports=1)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        seen.append((reports.client.tolist(), reports.used.tolist(), reports.arrived.tolist()))
        return Merge(np.full(len(reports), 0.5 if use else 0.0))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        return Carried(HOLD, kept=True) if ledger.round < until else Carried(DROP)

    return Policy("table", invite, close, merge, carry)


@ENGINES
def test_held_report_is_offered_to_every_merge(engine: Any) -> None:
    seen: list[Any] = []
    run = engine(WHO, table(seen))
    outcomes = [run.step() for _ in range(5)]
    # Client 1 reports anew at 2, 3, ...; client 0's report of time 1 stays.
    assert seen == [
        ([0], [0], [1.0]),
        ([1, 0], [0, 1], [2.0, 1.0]),
        ([1, 0], [0, 2], [3.0, 1.0]),
        ([1, 0], [0, 3], [4.0, 1.0]),
        ([1, 0], [0, 4], [5.0, 1.0]),
    ]
    assert [o.used for o in outcomes] == [1, 2, 2, 2, 2]
    assert [o.reused for o in outcomes] == [0, 1, 1, 1, 1]
    history = run.history()
    assert history.fates["fresh"] == 5  # each job once, however often it is used
    assert sum(history.fates.values()) == history.jobs == 5
    assert (history.open_jobs, history.waste) == (0, 0.0)
    assert history.merged_by_client.tolist() == [5, 4]
    assert history.weight_by_client.tolist() == [2.5, 2.0]


@ENGINES
def test_used_reports_are_dropped_without_waste(engine: Any) -> None:
    run = engine(WHO, table([], until=2))
    for _ in range(3):
        run.step()
    history = run.history()
    assert (history.waste, history.processing_waste, history.open_jobs) == (0.0, 0.0, 0)
    assert history.fates["over"] == 0


@ENGINES
def test_unused_reports_are_charged_when_dropped(engine: Any) -> None:
    """Held from round 0 to 2 by client 0; client 1's reports replace one another."""
    run = engine(WHO, table([], use=False, until=2))
    outcomes = [run.step() for _ in range(3)]
    # Each job took 1 and had reported when its round closed: 1 is charged for it.
    assert [o.waste for o in outcomes] == [0.0, 0.0, 3.0]
    assert [o.fates.sum() for o in outcomes] == [0, 0, 3]
    assert run.history().fates["over"] == 3


@ENGINES
def test_held_stale_report_has_the_fate_of_its_first_use(engine: Any) -> None:
    seen: list[Any] = []
    policy = table(seen, use=False)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.where(reports.client == 0, float(ledger.round >= 2), 0.0))

    run = engine(WHO, Policy("late", policy.invite, policy.close, merge, policy.carry))
    outcomes = [run.step() for _ in range(4)]
    # Client 0 began from version 0. Rounds 0 and 1 made versions 1 and 2 without moving the model.
    assert [o.fates[1] for o in outcomes] == [0, 0, 1, 0]
    assert [o.reused for o in outcomes] == [0, 0, 0, 1]
