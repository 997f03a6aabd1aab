"""A model from outside is a new version, in the engine as in the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.learn.linear import Logistic
from cafe.learn.quadratic import Quadratic
from cafe.policies import agu, mcu
from cafe.presence import Trace
from cafe.reference import Reference
from cafe.rounds import Policy

POLICIES = [
    mcu(quorum=2, deadline=0.5),
    mcu(quorum=3, deadline=0.4, late="keep"),
    agu(quorum=4, deadline=0.4),
    agu(quorum=4, deadline=0.4, pool="union"),
]


def task(**changes: Any) -> cafe.Task:
    rng = np.random.default_rng(5)
    data = Examples(rng.normal(size=(100, 3)), rng.integers(2, size=100))
    shards = Shards.of([rng.choice(100, 12) for _ in range(6)])
    given: dict[str, Any] = {"batch": 4, "rate": lambda t: 2.0 / (1.0 + t), "per": "update"}
    return cafe.Task(data, shards, Logistic(3, 2, l2=0.1), **(given | changes))


WHO = cafe.Federation(6, cafe.Exponential(1.0))


def test_two_rounds_by_hand() -> None:
    """A step moves the model half of the way to 1: from 0 to 0.5, then from 3 to 2."""
    data = Examples(np.ones((1, 1)), np.zeros(1))
    one = cafe.Task(data, Shards.of([np.array([0])]), Quadratic(1), rate=0.5)
    run = Run(cafe.Federation(1, cafe.Constant(1.0)), mcu(quorum=1, deadline=1.0), one)
    run.step()
    run.set_model(np.array([3.0], dtype=np.float32))
    assert run.ledger.version == 2
    assert run.evaluate().loss == 2.0
    outcome = run.step()
    assert outcome.version == 3
    assert outcome.fates[0] == 1  # fresh
    history = run.history()
    assert history.model is not None
    assert history.model.tolist() == [2.0]
    assert history.updates == 2


def test_running_job_started_from_the_old_model() -> None:
    """It started from 0 and moves by 0.5 towards 1, even if the model has changed meanwhile."""
    data = Examples(np.ones((1, 1)), np.zeros(1))
    one = cafe.Task(data, Shards.of([np.array([0])]), Quadratic(1), rate=0.5)
    policy = mcu(quorum=1, deadline=0.6, late="keep")
    run = Run(cafe.Federation(1, cafe.Constant(1.0)), policy, one)
    assert not run.step().succeeded
    run.set_model(np.array([3.0], dtype=np.float32))
    outcome = run.step()
    assert outcome.fates[1] == 1  # stale
    history = run.history()
    assert history.model is not None
    assert history.model.tolist() == [3.5]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_engine_equals_the_reference(policy: Policy) -> None:
    what = task()
    run, twin = Run(WHO, policy, what, seed=2), Reference(WHO, policy, what, seed=2)
    rng = np.random.default_rng(1)
    for number in range(40):
        if number % 3 == 2:
            given = rng.normal(size=8).astype(np.float32)
            run.set_model(given)
            twin.set_model(given)
        run.step()
        twin.step()
    ours, theirs = run.history(), twin.history()
    for name, column in ours.by_round.items():
        np.testing.assert_array_equal(column, theirs.by_round[name], err_msg=name)
    assert ours.model is not None
    assert theirs.model is not None
    np.testing.assert_allclose(ours.model, theirs.model, rtol=1e-4, atol=1e-6)
    assert 0 < ours.updates < 40
    assert int(ours.by_round["version"][-1]) == ours.updates + 13


def test_setting_the_same_model_changes_only_the_version() -> None:
    """A rate that decays per update counts only updates."""
    policy = POLICIES[0]
    plain = cafe.simulate(WHO, policy, task(), rounds=20, seed=3)
    run = Run(WHO, policy, task(), seed=3)
    for _ in range(20):
        assert run.training is not None
        run.set_model(run.training.model)
        run.step()
    ours = run.history()
    assert ours.model is not None
    assert plain.model is not None
    assert ours.model.tobytes() == plain.model.tobytes()
    np.testing.assert_array_equal(ours.by_round["waste"], plain.by_round["waste"])


def test_version_is_counted_without_a_task() -> None:
    run = Run(WHO, POLICIES[0], seed=3)
    run.set_model(None)
    assert run.ledger.version == 1


def test_model_that_was_set_is_saved() -> None:
    policy = replace(POLICIES[1])
    run = Run(WHO, policy, task(), seed=6)
    other = Run(WHO, policy, task(), seed=6)
    for number in range(8):
        run.step()
        if number == 3:
            run.set_model(np.ones(8, dtype=np.float32))
    restore(other, save(run))
    for each in (run, other):
        for _ in range(8):
            each.step()
    ours, theirs = run.history(), other.history()
    assert ours.model is not None
    assert theirs.model is not None
    assert ours.model.tobytes() == theirs.model.tobytes()


def test_report_before_the_opening_counts_when_the_round_opens() -> None:
    """The second round waits for clients until 10. A job of the first has reported at 1.5.

    The clock must not go back to 1.5.
    """
    presence = Trace([[0, 0, 99], [1, 0, 1], [1, 10, 99]])
    who = cafe.Federation(2, cafe.Constant(np.array([1.5, 3.0])), presence=presence)
    policy = mcu(quorum=2, target=2, deadline=1.0, late="keep")
    for kind in (Run, Reference):
        run: Any = kind(who, policy)
        assert not run.step().succeeded
        outcome = run.step()
        assert (outcome.opened, outcome.closed) == (10.0, 11.0)
        assert outcome.reports == 1
    first = replace(policy, close=mcu(quorum=1, target=1, deadline=1.0).close)
    for kind in (Run, Reference):
        run = kind(who, first)
        run.step()
        outcome = run.step()
        assert (outcome.opened, outcome.closed, outcome.succeeded) == (10.0, 10.0, True)
