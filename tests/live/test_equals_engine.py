"""A live run is the engine's run: the same fates, the same times, the same model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe
from cafe.data.examples import Shards
from cafe.engine import Run
from cafe.engine.batches import Batches
from cafe.learn.server import Adam, Momentum
from cafe.live.layout import Arrays
from cafe.live.wire import Trained
from cafe.live.work import Job, Train
from cafe.policies import mcu, recipes
from cafe.randomness import Stream
from cafe.rounds import HOLD, Carried, Ledger, Merge, Policy, Reports, Work
from cafe.rounds.outcome import Outcome
from tests.contracts.examples import CLIENTS, EVERY, NAMES, RECIPES, task
from tests.live.wires import VirtualWire, live

every_policy = pytest.mark.parametrize("policy", EVERY, ids=NAMES)
# A real server learns who is lost, and need not wait for them where it waits for all.
WAITING = [policy for policy in EVERY if policy.target != "all"]
EXACT = ("round", "succeeded", "version", "invited", "reports", "used")
CLOSE = ("opened", "closed", "waste", "processing_waste", "absent_waste", "work", "age")


def federation(availability: float = 1.0) -> cafe.Federation:
    slow = cafe.Federation.exponential(np.linspace(0.5, 3.0, CLIENTS - 4), None)
    steady = cafe.Federation(4, cafe.Constant(0.31), availability=availability)
    return cafe.Federation.join(slow, steady)


def keeping(policy: Policy) -> Policy:
    """The same: real clients keep local models only where the policy says that it needs them."""
    return replace(policy, needs=policy.needs | {"local models"})


def assert_same(mine: Outcome, theirs: Outcome) -> None:
    for name in EXACT:
        assert getattr(mine, name) == getattr(theirs, name), name
    np.testing.assert_array_equal(mine.fates, theirs.fates)
    for name in CLOSE:
        assert getattr(mine, name) == pytest.approx(getattr(theirs, name), abs=1e-9), name


def assert_equal_runs(policy: Policy, who: cafe.Federation, rounds: int, **given: Any) -> None:
    policy = keeping(policy)
    seed, crash = given.get("seed", 0), given.get("crash", 0.0)
    mine = live(VirtualWire(who, **given), policy)
    theirs = Run(who, policy, task() if "updates" in policy.needs else None, seed=seed, crash=crash)
    for _ in range(rounds):
        assert_same(mine.step().outcome, theirs.step())
    ours, its = mine.history(), theirs.history()
    np.testing.assert_allclose(ours.age_by_client, its.age_by_client, atol=1e-9)
    np.testing.assert_array_equal(ours.merged_by_client, its.merged_by_client)
    assert ours.open_jobs == its.open_jobs
    if "updates" not in policy.needs and "sizes" not in policy.needs:
        np.testing.assert_allclose(ours.weight_by_client, its.weight_by_client, atol=1e-9)


def test_every_recipe_is_examined() -> None:
    assert {policy.name for policy in EVERY} >= recipes().keys() == RECIPES.keys()


@every_policy
@pytest.mark.parametrize("notices", [0.0, 1.0])
def test_same_books(policy: Policy, notices: float) -> None:
    assert_equal_runs(policy, federation(), 12, seed=3, notices=notices)


@pytest.mark.parametrize("policy", WAITING, ids=str)
def test_same_books_where_clients_are_absent_and_crash(policy: Policy) -> None:
    assert_equal_runs(policy, federation(0.7), 12, seed=5, crash=0.25)


latencies = st.one_of(
    st.floats(0.2, 5.0).map(cafe.Exponential),
    st.tuples(st.floats(0.01, 0.5), st.floats(0.3, 3.0)).map(
        lambda p: cafe.ShiftedExponential(shift=p[0], rate=p[1])
    ),
    st.tuples(st.floats(-2, 0.5), st.floats(0.1, 1.0)).map(lambda p: cafe.LogNormal(*p)),
)


@given(
    policy=st.sampled_from([policy for policy in EVERY if "updates" not in policy.needs]),
    latency=latencies,
    clients=st.integers(10, 16),
    seed=st.integers(0, 2**40),
    notices=st.floats(0, 1),
)
@settings(max_examples=40, deadline=None)
def test_same_books_whatever_the_latency(
    policy: Policy, latency: Any, clients: int, seed: int, notices: float
) -> None:
    if policy.name == "memory":  # it waits longer than it says at first, and clients believe it
        notices = 0.0
    assert_equal_runs(policy, cafe.Federation(clients, latency), 12, seed=seed, notices=notices)


def test_rounds_that_wait_for_all_close_when_the_lost_are_known() -> None:
    policy = cafe.policies.fedavg(fraction=1.0, deadline=100.0)
    wire = VirtualWire(cafe.Federation(5, cafe.Uniform(0.5, 1.5)))
    wire.behave = lambda order: ("lost", "lost", "unreachable", "report", "report")[order.number]
    outcome = live(wire, policy).step().outcome
    assert outcome.closed < 1.5
    assert outcome.succeeded
    assert (outcome.reports, outcome.used, outcome.fates.sum()) == (2, 2, 5)


def mirrored(what: cafe.Task, seed: int) -> Train:
    """A client's training as the engine would do it."""
    batches, learner = Batches(what, seed), what.learner

    def train(model: Arrays, job: Job) -> Trained:
        at = learner.load(np.concatenate([model["first"], model["rest"].ravel()]))
        rate = np.array([[what.rate_at(job.round, job.version)]])
        steps = steps_of(job.work, what, job.number)
        address = np.array([[job.invitation]])
        walk = batches.walks(np.array([job.number]), address, rate, np.array([[steps]]), job.work)
        for rows, weight, step in zip(walk.rows[0], walk.weight[0], walk.rate[0], strict=True):
            at = at - learner.gradient(at, what.data, rows, weight) * float(step)
        return Trained(in_two(learner.save(at)), int(what.shards.counts[job.number]))

    return train


def steps_of(work: Work, what: cafe.Task, client: int) -> int:
    """How many steps a job takes."""
    if work.epochs is None:
        return work.steps
    return work.epochs * int(what.epoch_steps(np.array([client]))[0])


def in_two(vector: Any) -> Arrays:
    """A vector as two arrays: how a model is cut into arrays must not matter."""
    return {"first": vector[:3], "rest": vector[3:].reshape(-1, 2)}


def mixing() -> Policy:
    """Mixes in everybody's last model, fresh or not: versions of long ago are still needed."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        share = np.full(len(reports), 0.5 / ledger.clients)
        return Merge(share, keep=1.0 - float(share.sum()), of="model")

    base = mcu(quorum=3, deadline=0.4)
    return Policy("mixing", base.invite, base.close, merge, lambda *_: Carried(HOLD, kept=True))


LEARNERS = [*EVERY, mixing()]
SERVERS = [None, Adam(rate=0.05), Momentum(0.5, 0.5)]


@pytest.mark.parametrize("number", range(len(LEARNERS)), ids=[*NAMES, "mixing"])
def test_same_model(number: int) -> None:
    policy, seed, optimiser = LEARNERS[number], 7, SERVERS[number % 3]
    waits, policy = policy.target != "all", keeping(policy)
    what = task(server=optimiser)
    if policy.parameters.get("divisor") == "all":  # of whom nothing was heard holds one example
        what = replace(what, shards=Shards.of([np.array([k]) for k in range(CLIENTS)]))
    lossy: dict[str, Any] = {"crash": 0.1} if waits else {}
    who = federation(0.8 if waits else 1.0)
    wire = VirtualWire(who, seed, train=mirrored(what, seed), **lossy)
    begin = in_two(what.learner.save(what.learner.start(Stream(seed, "start").at(0))))
    mine = live(wire, policy, model=begin, optimiser=optimiser)
    theirs = Run(who, policy, what, seed=seed, crash=wire.crash)
    moved = 0.0
    for _ in range(12):
        assert_same(mine.step().outcome, theirs.step())
        assert theirs.training is not None
        expected = what.learner.save(theirs.training.model)
        moved = max(moved, float(np.abs(expected).max()))
        np.testing.assert_allclose(mine.model, expected, atol=1e-5 * max(moved, 1.0))
    assert moved > 0.01
    np.testing.assert_allclose(
        mine.history().weight_by_client, theirs.history().weight_by_client, atol=1e-5
    )
