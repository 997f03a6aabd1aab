"""The policies of docs/how-to/write-a-policy.md: simulated, by the reference, and on a wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import cafe
from cafe import reference
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.learn.linear import Logistic
from cafe.live.validation import ReportLimits
from cafe.policies import resolve
from cafe.randomness import Stream
from cafe.rounds import Policy
from cafe.testing import VirtualWire, check_policy, engine_trainer, split_in_two
from tests.support.books import assert_same_books
from tests.support.virtual_runs import live

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "examples" / "policies"
CLIENTS, SEED = 12, 4
GIVEN: dict[str, dict[str, Any]] = {
    "over_selection": {"goal": 4, "deadline": 1.0, "extra": 1.5},
    "fedbuff": {"concurrency": 6, "goal": 4, "power": 0.5},
    "last_updates": {"deadline": 0.6, "quorum": 2},
    "high_loss": {"cohort": 4, "deadline": 1.2},
}
every_example = pytest.mark.parametrize("name", GIVEN)


def recipe(name: str) -> Callable[..., Policy]:
    return cast("Callable[..., Policy]", resolve(f"{name}:{name}", folder=FOLDER))


def made(name: str) -> Policy:
    return recipe(name)(**GIVEN[name])


def federation(availability: float = 1.0) -> cafe.Federation:
    slow = cafe.Federation.exponential(np.linspace(0.8, 4.0, CLIENTS - 4), None)
    steady = cafe.Federation(4, cafe.Constant(0.31), availability=availability)
    return cafe.Federation.join(slow, steady)


def task() -> cafe.Task:
    rng = np.random.default_rng(5)
    data = Examples(rng.normal(size=(90, 4)), rng.integers(3, size=90))
    shards = Shards.of([rng.choice(90, size=3 + k, replace=False) for k in range(CLIENTS)])
    return cafe.Task(data, shards, batch=4, rate=0.3, learner=Logistic(4, 3, l2=0.01))


def test_every_example_has_an_entry() -> None:
    page = (DOCS / "how-to" / "write-a-policy.md").read_text(encoding="utf-8")
    assert {path.stem for path in FOLDER.glob("*.py")} == GIVEN.keys()
    for name in GIVEN:
        assert f"<!-- copy: ../examples/policies/{name}.py -->" in page


@every_example
def test_engine_and_reference_agree(name: str) -> None:
    who, what = federation(0.8), task()
    ours = cafe.simulate(who, made(name), what, rounds=40, seed=SEED, crash=0.1)
    theirs = reference.simulate(who, made(name), what, rounds=40, seed=SEED, crash=0.1)
    assert_same_books(ours, theirs)
    assert ours.updates > 20
    assert ours.model is not None
    assert theirs.model is not None
    assert np.abs(ours.model).max() > 0.01
    np.testing.assert_allclose(ours.model, theirs.model, atol=1e-5)


@every_example
def test_live_and_engine_agree(name: str) -> None:
    policy, what = made(name), task()
    # A real server that waits for all is told which jobs are lost, and does not wait for them.
    lossy = policy.target != "all"
    who, crash = federation(0.8 if lossy else 1.0), 0.1 if lossy else 0.0
    wire = VirtualWire(who, SEED, engine_trainer(what, SEED), crash, what)
    begin = split_in_two(what.learner.save(what.learner.start(Stream(SEED, "start").at(0))))
    mine = live(wire, policy, model=begin, report_limits=ReportLimits(clip=None))
    theirs = Run(who, policy, what, seed=SEED, crash=crash)  # the engine does not clip
    for _ in range(30):
        ours, its = mine.step().outcome, theirs.step()
        for field in ("round", "succeeded", "version", "invited", "reports", "used", "reused"):
            assert getattr(ours, field) == getattr(its, field), field
        np.testing.assert_array_equal(ours.fates, its.fates)
        for field in ("opened", "closed", "waste", "processing_waste", "work", "age"):
            assert getattr(ours, field) == pytest.approx(getattr(its, field), abs=1e-9), field
        assert theirs.training is not None
        expected = what.learner.save(theirs.training.model)
        np.testing.assert_allclose(mine.model, expected, atol=1e-5)
    assert mine.ledger.version > 15


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, key) for name, given in GIVEN.items() for key in given]
)
def test_examples_are_identified_by_their_parameters(name: str, parameter: str) -> None:
    one, same, other = made(name), made(name), {**GIVEN[name]}
    other[parameter] *= 2
    two = recipe(name)(**other)
    assert str(one) == str(same) != str(two)
    assert one.identity == same.identity != two.identity


@every_example
@pytest.mark.slow
def test_examples_satisfy_the_contract(name: str) -> None:
    check_policy(lambda: made(name), rounds=15)


def test_over_selection_closes_at_the_goal() -> None:
    policy = recipe("over_selection")(goal=4, deadline=100.0)
    run = cafe.simulate(cafe.Federation(CLIENTS, cafe.Constant(1.0)), policy, rounds=3)
    assert run.by_round["invited"].tolist() == [5, 5, 5]  # 1.3 times 4, rounded
    assert run.by_round["used"].tolist() == [4, 4, 4]
    assert run.by_round["closed"].tolist() == [1.0, 2.0, 3.0]
    assert run.fates["over"] == 3  # the fifth report comes with the fourth


def test_fedbuff_replaces_a_client_when_it_reports() -> None:
    # One client takes 1 s and the other 3 s, and both always work: reports come at 1, 2, 3, 3.
    who = cafe.Federation(2, cafe.Constant(np.array([1.0, 3.0])))
    run = cafe.simulate(who, recipe("fedbuff")(concurrency=2, goal=4), rounds=2)
    assert run.by_round["closed"].tolist() == [3.0, 6.0]
    # Two at the start and three replacements; the fourth report is replaced in the next round,
    # whose first three reports are replaced too.
    assert run.by_round["invited"].tolist() == [5, 4]
    assert run.merged_by_client.tolist() == [6, 2]
    assert run.waste == 0


def test_last_updates_are_used_in_every_round() -> None:
    # Client 0 reports in every round, client 1 never reports by the deadline, client 2 only once.
    times = cafe.Constant(np.array([0.5, 9.0, 0.6]))
    policy = recipe("last_updates")(deadline=1.0)
    first = policy.invite

    def invite(ledger: Any, rng: Any) -> Any:
        found = first(ledger, rng)
        return found if ledger.round == 0 else replace(found, clients=np.array([0, 1]))

    run = cafe.simulate(cafe.Federation(3, times), replace(policy, invite=invite), rounds=4)
    assert run.by_round["used"].tolist() == [2, 2, 2, 2]
    assert run.by_round["reused"].tolist() == [0, 1, 1, 1]
    assert run.fates["fresh"] == 5  # four reports of client 0, one of client 2
    assert run.merged_by_client.tolist() == [4, 0, 4]


def test_high_loss_prefers_unknown_clients_then_the_highest_loss() -> None:
    policy, what = recipe("high_loss")(cohort=4, deadline=50.0), task()
    run = Run(federation(), policy, what, seed=1)
    invited = []
    for _ in range(4):
        known = dict(run.ledger.state or {})
        before = run.ledger.merged.copy()
        run.step()
        invited.append(np.flatnonzero(run.ledger.merged > before).tolist())
    assert sorted(client for some in invited[:3] for client in some) == [
        *range(CLIENTS)
    ]  # everybody once
    highest = sorted(known, key=lambda client: -known[client])[:4]
    assert invited[3] == sorted(map(int, highest))
