"""A run is saved as arrays and restored, with everything that later rounds depend on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cafe.controllers import Fixed
from cafe.errors import InputError
from cafe.learn.server_optimisers import Adam
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.live.snapshot import restore, save
from cafe.live.wire import Order, Report
from cafe.policies import agu, awu, mcu
from cafe.rounds.history import RoundColumns, outcome_columns
from cafe.rounds.policy import Policy
from tests.support.chaos import Chaos, picky, play
from tests.support.virtual_runs import VirtualWire, exponential, live, start

POLICIES = [
    agu(quorum=6, deadline=0.3, pool="union"),
    awu(deadline=0.4, weight="linear"),
    mcu(quorum=2, deadline=0.3, late="keep"),
    picky(),
]


def made(wire: VirtualWire, policy: Policy, **given: Any) -> LiveRun:
    model = given.pop("model", start())
    return LiveRun(wire, Fixed(policy), GlobalModel(model, optimiser=Adam()), seed=1, **given)


def played(policy: Policy, rounds: int) -> tuple[LiveRun, VirtualWire]:
    """A run whose clients claim different sizes, misbehave, come and go."""

    def tamper(report: Report, order: Order) -> Report:
        return Report(**vars(report) | {"examples": 1 + order.number})

    chaos = Chaos(5, 0.3)
    wire = VirtualWire(exponential(7, 2.0), 1, tamper=tamper, behave=chaos, on_poll=chaos.look)
    run = made(wire, policy, model=start() | {"steps": np.array(4)})
    play(run, rounds)
    return run, wire


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("rounds", [1, 2, 3, 9, 14])
def test_whole_state_is_restored(policy: Policy, rounds: int) -> None:
    run, wire = played(policy, rounds)
    state = save(run)
    again = made(wire, policy, model=start() | {"steps": np.array(99)})
    restore(again, state)
    after = save(again)
    differing = {name for name in state if state[name].tobytes() != after[name].tobytes()}
    lost = {"running.arrival", "running.stop", "meta"} if len(run.running) else set()
    assert differing <= lost
    assert state.keys() == after.keys()
    meta, later = json.loads(bytes(state["meta"])), json.loads(bytes(after["meta"]))
    assert {k: v for k, v in meta.items() if k != "running"} == {
        k: v for k, v in later.items() if k != "running"
    }
    # Values that are not learned are those of the saved run, not of the new one.
    assert again.arrays["steps"] == 4
    assert again.now() == pytest.approx(run.ledger.now)
    assert again.clipper.norms == run.clipper.norms != {}
    np.testing.assert_array_equal(again.ledger.examples, run.ledger.examples)
    assert again.ledger.idle.tolist() == run.ledger.idle.tolist()


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_restored_run_sends_the_same_orders(policy: Policy) -> None:
    """From the same state the same orders go out; jobs that ran on are lost, and booked as such."""
    run, wire = played(policy, 6)
    running = len(run.running)
    again = made(wire, policy, model=start() | {"steps": np.array(4)})
    restore(again, save(run))
    wire.orders.clear()
    outcome = again.step().outcome
    assert {order.round for order in wire.orders} <= {6}
    assert outcome.fates.sum() + again.history().open_jobs >= running
    assert not set(again.running.client.tolist()) & set(run.running.client.tolist())


def test_saved_run_is_restored_only_into_an_equal_run() -> None:
    run, wire = played(POLICIES[0], 2)
    state, model = save(run), start() | {"steps": np.array(4)}
    for other in (
        LiveRun(wire, Fixed(POLICIES[0]), GlobalModel(model), seed=2),
        LiveRun(wire, Fixed(POLICIES[1]), GlobalModel(model), seed=1),
        LiveRun(wire, Fixed(POLICIES[0]), GlobalModel(start()), seed=1),
    ):
        with pytest.raises(InputError, match="The saved run has the"):
            restore(other, state)


def test_round_columns_grow_incrementally() -> None:
    run = live(VirtualWire(exponential(6, 2.0)), mcu(quorum=2, deadline=0.3))
    growing = RoundColumns()
    for more in (0, 1, 0, 3, 2, 0):
        for _ in range(more):
            run.step()
        found, expected = growing.of(run.outcomes), outcome_columns(run.outcomes)
        assert found.keys() == expected.keys()
        for name, column in expected.items():
            assert found[name].dtype == column.dtype
            np.testing.assert_array_equal(found[name], column)
