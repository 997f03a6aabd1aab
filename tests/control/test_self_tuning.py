"""A controller without any knowledge finds the plan, follows changes, and says what it does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.control import SelfTuning
from cafe.controllers import Choice, identity_of
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.errors import InputError
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.planner import ToAccuracy
from cafe.presence import Trace
from cafe.reference import Reference
from cafe.rounds import Ledger
from cafe.testing import VirtualWire, split_in_two
from cafe.testing.comparison import ROUNDING, Check
from tests.support.policies import federation, task

GAMMA = cafe.Federation(40, cafe.Gamma(shape=2.0, scale=np.repeat([1.0, 2.0], 20)))


def played(run: Run, rounds: int) -> Run:
    for _ in range(rounds):
        run.step()
    return run


def loss(run: Run, who: cafe.Federation, **arguments: Any) -> float:
    """How much more the plan in force costs than the best plan for the true clients."""
    best = cafe.plan(who, **arguments)
    plan = run.ledger.control
    return best.goal.cost(best.search.expect(plan["quorum"], plan["deadline"])) / best.cost - 1.0


def test_it_finds_the_plan_without_a_time_scale() -> None:
    for unit in (1e-3, 1e3):
        who = GAMMA.scaled(unit)
        run = played(Run(who, SelfTuning(), seed=1), 12)
        assert loss(run, who) < 0.1
        assert run.outcomes[0].closed < 30 * unit


def test_goals_and_limits_are_kept() -> None:
    who = cafe.Federation(40, cafe.Exponential(1.0))
    run = played(Run(who, SelfTuning(waste_price=0.5, broadcast_price=2.0), seed=1), 12)
    assert loss(run, who, waste_price=0.5, broadcast_price=2.0) < 0.25
    limited = played(Run(who, SelfTuning(at_most={"deadline": 0.5}), seed=1), 12)
    assert max(o.closed - o.opened for o in limited.outcomes) <= 0.5 + 1e-9


def test_limits_that_no_plan_keeps_are_reported_and_the_run_goes_on() -> None:
    controller = SelfTuning(at_most={"deadline": 0.5}, at_least={"expected_reports": 39})
    run = played(Run(cafe.Federation(40, cafe.Exponential(1.0)), controller, seed=1), 5)
    assert any("No plan keeps the limits" in reason for _, reason in run.reasons)
    assert run.outcomes[-1].succeeded


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_wrong_deadline_is_corrected(factor: float) -> None:
    run = played(Run(GAMMA, SelfTuning(), seed=2), 3)
    run.ledger.control |= {"deadline": factor * run.ledger.control["deadline"], "planned": 2}
    assert loss(run, GAMMA) > 0.3
    played(run, 15)
    assert loss(run, GAMMA) < 0.1


@pytest.mark.parametrize("factor", [0.25, 3.0])
def test_changes_of_speed_are_followed(factor: float) -> None:
    run = played(Run(GAMMA, SelfTuning(), seed=3), 10)
    moved = len(run.reasons)
    after = GAMMA.scaled(factor)
    run.federation = run.starter.federation = after
    assert loss(run, after) > 0.3
    played(run, 8)
    assert loss(run, after) < 0.1
    number, reason = run.reasons[moved]
    assert number <= 13
    assert ("longer" if factor > 1 else "less time") in reason


def test_newcomers_are_noticed() -> None:
    rows = [[k, 0.0 if k < 28 else 60.0, 1e9] for k in range(40)]
    latency = cafe.Gamma(shape=2.0, scale=np.repeat([1.0, 4.0], [28, 12]))
    run = Run(cafe.Federation(40, latency, presence=Trace(rows)), SelfTuning(), seed=1)
    while run.ledger.now < 60:
        run.step()
    early = run.ledger.control["deadline"]
    played(run, 15)
    assert run.ledger.control["deadline"] > 1.3 * early
    assert loss(run, cafe.Federation(40, latency)) < 0.1


def test_quorum_follows_the_clients_that_are_present() -> None:
    rows = [[k, 0.0, 1e9 if k < 10 else 40.0] for k in range(40)]
    who = cafe.Federation(40, cafe.Constant(1.0), presence=Trace(rows))
    run = played(Run(who, SelfTuning(), seed=1), 3)
    while run.ledger.now < 60:
        assert run.step().succeeded or run.ledger.now >= 40
    assert run.policy.quorum <= 10


def test_plans_are_kept_between_renewals_and_states_are_plain() -> None:
    run = Run(GAMMA, SelfTuning(), seed=1)
    planned = []
    for _ in range(16):
        run.step()
        state = run.ledger.control
        assert json.loads(json.dumps(state)) == state
        planned.append(state["planned"])
    assert 3 <= len(set(planned)) <= 9


def test_same_arguments_give_the_same_choice() -> None:
    run = played(Run(GAMMA, SelfTuning(), seed=1), 6)
    seen, ledger = run.responses.observations(), run.ledger
    first, again = SelfTuning()(ledger, seen), SelfTuning()(ledger, seen)
    assert (first.state, first.reason) == (again.state, again.reason)
    assert first.policy.identity == again.policy.identity


@pytest.mark.slow
def test_engine_reference_and_live_agree() -> None:
    who, what, rounds = federation(0.8), task(), 8
    engine = Run(who, SelfTuning(), what, seed=3)
    reference = Reference(who, SelfTuning(), what, seed=3)
    check = Check(engine.policy, "self-tuning")
    for _ in range(rounds):
        check.same_outcome(engine.step(), reference.step(), ("the engine", "the reference"))
    assert engine.ledger.control["stays"] is not None
    # A wire rounds response times to microseconds: of such long times, this changes nothing.
    who = who.scaled(1e3)
    wire = VirtualWire(who, 3, notices=1.0)
    model = GlobalModel(split_in_two(np.zeros(6, np.float32)))
    live = LiveRun(wire, SelfTuning(first_stop=1e9), model, seed=3, secure_aggregation=True)
    live.refresh_clients()
    engine = Run(who, SelfTuning(first_stop=1e9), seed=3)
    for _ in range(rounds):
        mine, theirs = engine.step(), live.step().outcome
        theirs.bytes_down, theirs.bytes_up = mine.bytes_down, mine.bytes_up
        check.same_outcome(theirs, mine, ("the live run", "the engine"), ROUNDING)
    assert [round_ for round_, _ in live.reasons] == [round_ for round_, _ in engine.reasons]


@pytest.mark.parametrize("after", [1, 5])
def test_a_restored_run_continues_equally(after: int) -> None:
    who, what = federation(0.9), task()
    whole = Run(who, SelfTuning(), what, seed=4)
    outcomes = []
    for k in range(8):
        if k == after:
            state = save(whole)
        outcomes.append(whole.step())
    again = Run(who, SelfTuning(), what, seed=4)
    restore(again, state)
    check = Check(again.policy, "self-tuning")
    for mine in outcomes[after:]:
        check.same_outcome(mine, again.step(), ("the whole run", "the restored run"))
    ends = [{name: a.tobytes() for name, a in save(run).items()} for run in (whole, again)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("hidden", [True, False])
def test_it_does_without_updates_and_says_so(hidden: bool) -> None:
    run = Run(federation(), SelfTuning(), task(), seed=1, secure_aggregation=hidden)
    played(run, 7)
    said = [reason for _, reason in run.reasons if "cannot be seen" in reason]
    assert bool(said) == hidden
    assert (run.ledger.control["stays"] is None) == hidden


def test_given_ratios_and_prices_are_not_measured() -> None:
    for controller in (
        SelfTuning(goal=ToAccuracy(noise_ratio=3.0)),
        SelfTuning(waste_price=1.0, broadcast_price=1.0),
    ):
        run = played(Run(federation(), controller, task(), seed=1), 6)
        assert run.ledger.control["probes"] == 0
        assert not any("cannot be seen" in reason for _, reason in run.reasons)


def test_nobody_reports_within_the_first_limit() -> None:
    who = cafe.Federation(20, cafe.Constant(50.0))
    run = played(Run(who, SelfTuning(first_stop=10.0), seed=1), 6)
    lengths = [round(o.closed - o.opened, 1) for o in run.outcomes]
    assert lengths[:2] == [10.0, 40.0]
    assert run.outcomes[-1].succeeded
    assert run.reasons[0][1].startswith("No client has reported within 10 s")
    assert loss(run, who) < 0.1


@pytest.mark.parametrize("clients", [1, 2])
def test_very_few_clients(clients: int) -> None:
    who = cafe.Federation(clients, cafe.Constant(2.0))
    run = played(Run(who, SelfTuning(), seed=1), 6)
    assert all(outcome.succeeded for outcome in run.outcomes)
    assert loss(run, who) < 0.1


def test_a_ledger_without_clients_gets_a_policy() -> None:
    choice = SelfTuning()(Ledger.new(np.empty(0, dtype=np.int64)), None)
    assert isinstance(choice, Choice)
    assert choice.policy.deadline == 3600.0


def test_text_and_identity_show_the_arguments() -> None:
    assert str(SelfTuning()) == "SelfTuning()"
    priced = SelfTuning(waste_price=1.0, at_most={"deadline": 5.0})
    assert str(priced) == "SelfTuning(waste_price=1.0, at_most={'deadline': 5.0})"
    assert identity_of(priced) == identity_of(
        SelfTuning(waste_price=1.0, at_most={"deadline": 5.0})
    )
    assert identity_of(priced) != identity_of(SelfTuning(waste_price=1.0))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InputError, match="either prices or a goal"):
        SelfTuning(waste_price=1.0, goal="time")
    with pytest.raises(InputError, match="No limit can be set on 'dedline'"):
        SelfTuning(at_most={"dedline": 1.0})
    with pytest.raises(InputError, match="first_stop"):
        SelfTuning(first_stop=0.0)
