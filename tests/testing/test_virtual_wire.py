"""Simulated clients on a virtual wire: when replies come, and faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.policies import mcu
from cafe.presence import Trace
from cafe.rounds import Fate
from cafe.testing import VirtualWire, random_step
from tests.support.virtual_runs import live

POLICY = mcu(quorum=1, deadline=2.5)


def steady(*times: float) -> cafe.Federation:
    return cafe.Federation(len(times), cafe.Constant(np.array(times)))


def test_clients_report_after_their_response_times() -> None:
    wire = VirtualWire(steady(1.0, 2.0, 3.0), train=random_step)
    run = live(wire, POLICY)
    outcome = run.step().outcome
    assert outcome.closed == pytest.approx(2.5, abs=1e-9)
    assert (outcome.reports, outcome.used) == (2, 2)
    assert [order.client for order in wire.orders] == ["c000", "c001", "c002"]
    assert wire.clock() == pytest.approx(2.5, abs=1e-9)


@pytest.mark.parametrize(
    ("way", "fate"),
    [
        ("lost", Fate.CRASHED),
        ("unreachable", Fate.ABSENT),
        ("silent", Fate.LATE),
        ("late", Fate.LATE),
        ("malformed", Fate.REFUSED),
        ("not finite", Fate.REFUSED),
        ("report", Fate.FRESH),
        ("twice", Fate.FRESH),
    ],
)
def test_each_fault_has_its_fate(way: str, fate: Fate) -> None:
    """Client 0 reports; client 1 has the fault."""
    wire = VirtualWire(steady(1.0, 1.5))
    wire.behave = lambda order: way if order.number == 1 else "report"
    fates = live(wire, POLICY).step().outcome.fates
    assert fates.sum() == 2
    assert fates[fate] == (2 if fate == Fate.FRESH else 1)


def test_every_poll_is_counted_and_announced() -> None:
    wire = VirtualWire(steady(1.0, 1.0))
    seen: list[Any] = []
    wire.on_poll = lambda at: seen.append(at.polls)
    assert wire.present() == ["c000", "c001"]
    wire.presence = Trace([[0, 0.0, 9.0], [1, 5.0, 9.0]]).begin(2, 0)
    assert wire.present() == ["c000"]
    assert (wire.polls, seen) == (2, [1, 2])


def test_time_always_advances() -> None:
    wire = VirtualWire(steady(1.0))
    wire.sleep(0.0)
    assert 0.0 < wire.t < 1e-300
    wire.sleep(0.5)
    assert wire.t == 0.5


def test_a_random_step_depends_on_the_client_and_the_invitation() -> None:
    models = []
    for _ in range(2):
        run = live(VirtualWire(steady(1.0, 1.0)), POLICY)
        run.step()
        models.append(run.model)
    assert np.any(models[0] != 0)
    np.testing.assert_array_equal(models[0], models[1])
