"""A controller may alternate between any two policies: each starts without what the other left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cafe.controllers import as_controller
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.fitting import Observations
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.live.validation import ReportLimits
from cafe.policies import mcu, parameter_freezing, scaffold
from cafe.randomness import Stream
from cafe.reference import Reference
from cafe.rounds import Closed, Ledger, Policy
from cafe.rounds.outcome import Outcome
from cafe.testing import VirtualWire, split_in_two
from cafe.testing.client_training import engine_trainer
from cafe.testing.comparison import Check
from cafe.testing.contract import SEEN
from tests.support.policies import federation, task
from tests.support.recipes import modules

# One setting of each recipe of one level. Policies with an optimiser cannot follow one without.
POLICIES = [
    variants[0]
    for variants in (module.VARIANTS for module in modules().values())
    if isinstance(variants[0], Policy) and variants[0].server is None
]


@dataclass(frozen=True)
class Alternating:
    """Two rounds of one policy, two of each other in turn."""

    one: Policy
    others: tuple[Policy, ...]

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        turn = ledger.round // 2
        return self.one if turn % 2 == 0 else self.others[turn // 2 % len(self.others)]


def ids(policy: Policy) -> str:
    return policy.name


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_each_policy_alternates_with_each_other(policy: Policy) -> None:
    others = tuple(other for other in POLICIES if other.name != policy.name)
    controller = Alternating(policy, others)
    engine = Run(federation(), controller, task(), seed=2)
    reference = Reference(federation(), controller, task(), seed=2)
    check, who = Check(policy, "alternating"), ("the engine", "the reference")
    rounds, half = 4 * len(others), 2 * len(others) + 1
    outcomes = []
    for k in range(rounds):
        if k == half:
            saved = save(engine)
        outcomes.append(engine.step())
        check.same_outcome(outcomes[-1], reference.step(), who)
    ours, its = engine.history(), reference.history()
    check.same_clients(ours, its, who, weights=SEEN)
    check.same_model(ours.model, its.model, rounds, who, SEEN)
    again = Run(federation(), controller, task(), seed=2)
    restore(again, saved)
    for mine in outcomes[half:]:
        check.same_outcome(mine, again.step(), ("the whole run", "the restored run"))
    ends = [{name: a.tobytes() for name, a in save(run).items()} for run in (engine, again)]
    assert ends[0] == ends[1]


def counting(name: str) -> Policy:
    """Its state is how many of its rounds have ended."""

    def observe(ledger: Ledger, outcome: Outcome, closed: Closed) -> int:
        return (ledger.state or 0) + 1

    base = mcu(quorum=1, deadline=1.0)
    return Policy(
        name, base.invite, base.close, base.merge, base.carry, observe=observe, deadline=1.0
    )


def test_state_is_kept_while_the_name_stays_and_dropped_when_it_changes() -> None:
    names = ["a", "a", "b", "a", "a"]

    def controller(ledger: Ledger, seen: Observations | None) -> Policy:
        return counting(names[ledger.round])

    found: dict[str, list[Any]] = {}
    for kind in (Run, Reference):
        run: Any = kind(federation(), controller, seed=1)
        states = found.setdefault(kind.__name__, [])
        for _ in names:
            run.step()
            states.append(run.state if kind is Reference else run.ledger.state)
    assert found == {"Run": [1, 2, 1, 1, 2], "Reference": [1, 2, 1, 1, 2]}


@pytest.mark.parametrize(
    "first",
    [
        scaffold(fraction=1.0, steps=2, deadline=2.0),
        parameter_freezing(deadline=2.0, threshold=0.9),
    ],
    ids=ids,
)
def test_vectors_of_another_policy_reach_no_later_job(first: Policy) -> None:
    what, seed = task(), 4

    def controller(ledger: Ledger, seen: Observations | None) -> Policy:
        return first if ledger.round < 4 else mcu(quorum=1, deadline=2.0)

    wire = VirtualWire(federation(), seed, notices=1.0, task=what)
    wire.train = engine_trainer(what, seed)
    model = split_in_two(what.learner.save(what.learner.start(Stream(seed, "start").at(0))))
    live = LiveRun(
        wire,
        as_controller(controller),
        GlobalModel(model),
        seed=seed,
        report_limits=ReportLimits(clip=None),
    )
    live.refresh_clients()
    live.books.columns.examples[:] = what.shards.counts
    engine = Run(federation(), controller, what, seed=seed)
    assert engine.training is not None
    check = Check(first, "vectors end")
    for k in range(8):
        mine = engine.step()
        check.same_outcome(live.step().outcome, mine, ("the live run", "the engine"), 1e-9)
        assert engine.training.vectors.used == (0 <= k < 4)
        assert live.vectors.used == (0 <= k < 4)
        expected = what.learner.save(engine.training.model)
        check.same_model(live.model, expected, k, ("the live run", "the engine"), SEEN)
    assert not engine.training.vectors.begun
