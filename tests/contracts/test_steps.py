"""Steps that take time, work that is cut short, clients that leave: times worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.decisions import Everyone
from cafe.engine import Run
from cafe.policies import mcu
from cafe.presence import Trace
from cafe.reference import Reference
from cafe.rounds import Fate, Invitation, Ledger, Merge, Policy, Reports, Work
from cafe.testing.check import small_task

ENGINES = pytest.mark.parametrize("engine", [Run, Reference])
WHO = cafe.Federation(3, cafe.Constant(0.5), per_step=0.25)


def looking(invite: Any, deadline: float, seen: list[Any], quorum: int = 1) -> Policy:
    """A policy that records what its merges see."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        rows = (reports.client, reports.arrived, reports.steps, reports.seconds, reports.note)
        seen.append([*zip(*(column.tolist() for column in rows), strict=True)])
        return Merge(np.zeros(len(reports)))

    return replace(mcu(quorum=quorum, deadline=deadline), invite=invite, merge=merge)


@ENGINES
def test_steps_by_client(engine: Any) -> None:
    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(ledger.idle, amount=np.array([1, 2, 4]), note=np.array([0.5, 1.0, 2.0]))

    seen: list[Any] = []
    engine(WHO, looking(invite, 10.0, seen)).step()
    # 0.5 and 0.25 for each step.
    assert seen == [[(0, 0.75, 1, 0.25, 0.5), (1, 1.0, 2, 0.5, 1.0), (2, 1.5, 4, 1.0, 2.0)]]


@ENGINES
def test_partial_work(engine: Any) -> None:
    """By 1.3 a client can take 3 of 5 steps: 0.5 + 3 * 0.25 = 1.25."""
    seen: list[Any] = []
    run = engine(WHO, looking(Everyone(Work(5, partial=True)), 1.3, seen))
    outcome = run.step()
    assert seen == [[(k, 1.25, 3, 0.75, 0.0) for k in range(3)]]
    assert outcome.fates[Fate.LATE] == 0
    whole = engine(WHO, looking(Everyone(Work(5)), 1.3, seen, quorum=1))
    assert whole.step().fates[Fate.LATE] == 3  # they would come at 1.75


@ENGINES
def test_partial_work_that_cannot_take_one_step_is_late(engine: Any) -> None:
    run = engine(WHO, looking(Everyone(Work(5, partial=True)), 0.7, []))
    outcome = run.step()
    assert (outcome.reports, outcome.fates[Fate.LATE]) == (0, 3)
    assert outcome.work == pytest.approx(3 * 0.7)


@ENGINES
def test_partial_work_may_end_at_the_deadline(engine: Any) -> None:
    seen: list[Any] = []
    engine(WHO, looking(Everyone(Work(5, partial=True)), 1.0, seen)).step()
    assert [row[:3] for row in seen[0]] == [(k, 1.0, 2) for k in range(3)]


@ENGINES
def test_work_in_seconds(engine: Any) -> None:
    """In 0.6 seconds a client takes 2 steps of 0.25; in 0.1 seconds it still takes one."""
    for budget, steps in ((0.6, 2), (0.5, 2), (0.1, 1)):
        seen: list[Any] = []
        engine(WHO, looking(Everyone(Work(seconds=budget)), 9.0, seen)).step()
        assert [row[1:4] for row in seen[0]] == [(0.5 + steps * 0.25, steps, steps * 0.25)] * 3


@ENGINES
def test_job_of_a_client_that_leaves_is_lost(engine: Any) -> None:
    """Client 0 stays, client 1 leaves at 0.6 in the middle of its job, client 2 was never there."""
    presence = Trace([[0, 0.0, 100.0], [1, 0.0, 0.6], [2, 50.0, 60.0]])
    who = cafe.Federation(3, cafe.Constant(1.0), presence=presence)

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(ledger.idle)

    run = engine(who, replace(mcu(quorum=1, deadline=2.0), invite=invite))
    outcome = run.step()
    assert (outcome.invited, outcome.reports, outcome.downloads) == (2, 1, 2)
    assert outcome.fates[Fate.CRASHED] == 1
    assert outcome.work == pytest.approx(1.0 + 0.6)
    assert outcome.processing_waste == pytest.approx(0.6)
    assert outcome.waste == pytest.approx(2.0)  # charged to the close


@ENGINES
def test_bytes(engine: Any) -> None:
    """15 numbers of 4 bytes; half of it is sent to clients, and a tenth comes back."""
    who, what = cafe.Federation(3, cafe.Constant(0.5)), small_task(3)
    invite = Everyone(Work(download=0.5, upload=0.1))
    run = engine(who, replace(mcu(quorum=1, deadline=1.0), invite=invite), what)
    outcome = run.step()
    assert outcome.downloads == 3
    assert outcome.bytes_down == pytest.approx(3 * 60 * 0.5)
    assert outcome.bytes_up == pytest.approx(3 * 60 * 0.1)


@ENGINES
def test_bytes_of_late_and_absent_clients(engine: Any) -> None:
    """Absent clients are sent nothing; late clients are sent the model and send nothing back."""
    what = small_task(3)
    who = cafe.Federation.join(
        cafe.Federation(1, cafe.Constant(0.5)),
        cafe.Federation(1, cafe.Constant(5.0)),
        cafe.Federation(1, cafe.Constant(0.5), availability=1e-12),
    )
    outcome = engine(who, mcu(quorum=1, deadline=1.0), what).step()
    assert outcome.downloads == 2
    assert (outcome.bytes_down, outcome.bytes_up) == (120.0, 60.0)


@ENGINES
def test_partial_work_at_the_deadline_is_exact_in_floating_point(engine: Any) -> None:
    """0.5 + 10 * 0.1 is 1.5 in floating point too, although 1.0 // 0.1 is 9."""
    seen: list[Any] = []
    who = cafe.Federation(1, cafe.Constant(0.5), per_step=0.1)
    engine(who, looking(Everyone(Work(50, partial=True)), 1.5, seen)).step()
    assert [(arrived, steps) for _, arrived, steps, _, _ in seen[0]] == [(1.5, 10)]


@ENGINES
def test_bytes_of_compressed_reports(engine: Any) -> None:
    """Three reports of a tenth of 15 numbers of 4 bytes."""
    who = cafe.Federation(3, cafe.Constant(0.5))
    run = engine(who, looking(Everyone(Work(upload=0.1)), 1.0, []), small_task(3))
    assert run.step().bytes_up == 0.1 * 3 * 60


@ENGINES
def test_work_in_seconds_is_at_most_a_billion_steps(engine: Any) -> None:
    seen: list[Any] = []
    who = cafe.Federation(1, cafe.Constant(0.5), per_step=1e-13)
    engine(who, looking(Everyone(Work(seconds=1.0)), 2.0, seen)).step()
    assert seen[0][0][2] == 10**9
