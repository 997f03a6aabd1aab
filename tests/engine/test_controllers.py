"""A controller chooses the policy of each round from what the server has seen, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.controllers import Choice
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.fitting import Observations
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.policies import mcu
from cafe.reference import Reference
from cafe.rounds import Ledger, Policy, PolicyChange
from cafe.testing import VirtualWire, split_in_two
from cafe.testing.comparison import ROUNDING, Check
from tests.support.policies import federation, task

WHO = cafe.Federation.join(
    cafe.Federation(3, cafe.Constant(0.3)), cafe.Federation(2, cafe.Constant(5.0))
)


@dataclass(frozen=True)
class Halving:
    """The deadline is 1 until response times have been seen, and half of it afterwards."""

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        return mcu(quorum=1, deadline=1.0 if seen is None else 0.5)


@dataclass(frozen=True)
class Following:
    """The deadline is twice the median time seen; a late client counts as slower than that."""

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        if seen is None:
            return mcu(quorum=1, deadline=1.0)
        times = np.where(np.isnan(seen.seconds), seen.deadline, seen.seconds)
        return mcu(quorum=2, deadline=round(2.0 * float(np.median(times)), 3))


@dataclass(frozen=True)
class Counting:
    """The deadline is the number of calls in the run so far, which only its state tells."""

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Choice:
        calls = (ledger.control or 0) + 1
        policy = mcu(quorum=1, deadline=float(calls))
        return Choice(policy, calls, "" if calls == 1 else f"This is call {calls}.")


@pytest.mark.parametrize("kind", [Run, Reference])
def test_a_controller_that_halves_the_deadline(kind: Any) -> None:
    run = kind(WHO, Halving())
    closed = [run.step().closed for _ in range(4)]
    assert closed == [1.0, 1.5, 2.0, 2.5]


@pytest.mark.parametrize("controller", [Halving(), Following(), Counting()])
def test_engine_reference_and_live_choose_the_same_policies(controller: Any) -> None:
    who = federation()
    engine, reference = Run(who, controller, seed=3), Reference(who, controller, seed=3)
    wire = VirtualWire(who, 3, notices=1.0)
    live = LiveRun(wire, controller, GlobalModel(split_in_two(np.zeros(6, np.float32))), seed=3)
    live.refresh_clients()
    check = Check(engine.policy, "controllers")
    for _ in range(15):
        mine = engine.step()
        check.same_outcome(mine, reference.step(), ("the engine", "the reference"))
        theirs = live.step().outcome
        theirs.bytes_down, theirs.bytes_up = mine.bytes_down, mine.bytes_up
        check.same_outcome(theirs, mine, ("the live run", "the engine"), ROUNDING)


@pytest.mark.parametrize("kind", [Run, Reference])
def test_state_of_a_controller_is_what_it_returned_in_the_last_round(kind: Any) -> None:
    run = kind(WHO, Counting())
    assert [run.step().closed for _ in range(4)] == [1.0, 3.0, 6.0, 10.0]


def test_policy_changes_are_kept_with_their_reasons_and_saved() -> None:
    run, again = Run(WHO, Counting()), Run(WHO, Counting())
    for _ in range(3):
        run.step()
    expected = [
        PolicyChange(0, "mcu(quorum=1, deadline=1.0)", 1.0, 1),
        PolicyChange(1, "mcu(quorum=1, deadline=2.0)", 2.0, 1, "This is call 2."),
        PolicyChange(2, "mcu(quorum=1, deadline=3.0)", 3.0, 1, "This is call 3."),
    ]
    assert run.policy_changes == expected
    assert run.reasons == [(1, "This is call 2."), (2, "This is call 3.")]
    assert run.history().policy_changes == (*expected,)
    restore(again, save(run))
    assert again.policy_changes == expected
    assert again.step().closed == 10.0


def test_only_rounds_that_change_the_policy_are_noted() -> None:
    run, fixed = Run(WHO, Halving()), Run(WHO, mcu(quorum=1, deadline=1.0))
    for _ in range(4):
        run.step()
        fixed.step()
    assert [(change.round, change.deadline) for change in run.policy_changes] == [
        (0, 1.0),
        (1, 0.5),
    ]
    assert fixed.policy_changes == []
    assert fixed.history().policy_changes == ()


def test_live_run_has_one_state_per_round_however_often_clients_come_and_go() -> None:
    wire = VirtualWire(WHO, 3, notices=1.0)
    model = GlobalModel(split_in_two(np.zeros(6, np.float32)))
    live = LiveRun(wire, Counting(), model, seed=3)
    for away in ([True] * 5, [False] * 5, [True, False, False, False, False]):
        live.refresh_clients()
        live.ledger.set_away(np.array(away))
        live.choose_policy()
    assert live.step().outcome.closed == 1.0
    assert live.step().outcome.closed == 3.0
    found = [(change.round, change.reason) for change in live.policy_changes]
    assert found == [(0, ""), (1, "This is call 2.")]
    assert live.history().policy_changes == (*live.policy_changes,)


@pytest.mark.parametrize("controller", [Following(), Counting()])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_restored_run_calls_its_controller_with_the_same_arguments(
    after: int, controller: Any
) -> None:
    who, what = federation(0.9), task()
    whole = Run(who, controller, what, seed=4, crash=0.1)
    outcomes = []
    for k in range(12):
        if k == after:
            state = save(whole)
        outcomes.append(whole.step())
    again = Run(who, controller, what, seed=4, crash=0.1)
    restore(again, state)
    check = Check(again.policy, "controllers")
    for mine in outcomes[after:]:
        check.same_outcome(mine, again.step(), ("the whole run", "the restored run"))
    ends = [{name: a.tobytes() for name, a in save(run).items()} for run in (whole, again)]
    assert ends[0] == ends[1]
