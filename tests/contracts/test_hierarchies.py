"""The rules that every hierarchy must keep.

The policies of their levels are tested like all others, in ``test_policies.py``. That books and
models equal those of a slow simulator is tested here and in ``tests/engine/test_hierarchy_run.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine.hierarchy_run import HierarchyRun
from cafe.errors import InputError
from cafe.learn.server_optimisers import Adam
from cafe.policies import recipes, scheme_of
from cafe.presence import OnOff
from cafe.rounds import Hierarchy, Outcome
from tests.engine.test_hierarchy_run import assert_same
from tests.support.policies import HIERARCHIES, federation, task
from tests.support.slow_hierarchy import SlowHierarchy

pytestmark = pytest.mark.slow
every_hierarchy = pytest.mark.parametrize("policy", HIERARCHIES, ids=str)


def assert_equal(one: cafe.History, other: cafe.History) -> None:
    """Bit by bit."""
    for name in (field.name for field in fields(Outcome)):
        np.testing.assert_array_equal(one.by_round[name], other.by_round[name], err_msg=name)
    for name in ("age_by_client", "merged_by_client", "weight_by_client", "model", "open_jobs"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_every_hierarchical_recipe_returns_hierarchies() -> None:
    hierarchical = {name for name, each in recipes().items() if kind(each) == "hierarchical"}
    assert hierarchical == {policy.name for policy in HIERARCHIES}


def kind(recipe: Callable[..., Any]) -> str:
    scheme = scheme_of(recipe)
    assert scheme is not None
    return scheme.kind


@every_hierarchy
def test_engine_and_slow_simulator_have_the_same_books(policy: Hierarchy) -> None:
    who = federation(0.7)
    slow = SlowHierarchy(who, policy, None, 20, 3, 0.25)
    assert_same(cafe.simulate(who, policy, rounds=20, seed=3, crash=0.25), slow)


@every_hierarchy
def test_engine_and_slow_simulator_learn_the_same_model(policy: Hierarchy) -> None:
    who = replace(federation(), per_step=0.03)
    slow = SlowHierarchy(who, policy, task(), 12, 7)
    history = cafe.simulate(who, policy, task(), rounds=12, seed=7)
    assert_same(history, slow)
    assert history.model == pytest.approx(slow.model, rel=1e-4, abs=1e-6)


@every_hierarchy
def test_same_seed_gives_the_same_bytes(policy: Hierarchy) -> None:
    what = task(server=Adam())
    one, other = (cafe.simulate(federation(), policy, what, rounds=15, seed=4) for _ in range(2))
    assert_equal(one, other)


@every_hierarchy
def test_another_seed_gives_another_run(policy: Hierarchy) -> None:
    one, other = (cafe.simulate(federation(), policy, rounds=20, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.by_round["work"], other.by_round["work"])


@every_hierarchy
def test_time_and_ages_are_consistent(policy: Hierarchy) -> None:
    history = cafe.simulate(federation(0.8), policy, rounds=50, seed=2, crash=0.1)
    opened, closed = history.by_round["opened"], history.by_round["closed"]
    assert opened[0] == 0
    np.testing.assert_array_equal(opened[1:], closed[:-1])
    assert np.all(closed >= opened)
    waste, processing = history.by_round["waste"], history.by_round["processing_waste"]
    assert np.all(processing <= waste + 1e-9)
    assert history.processing_waste <= history.client_seconds + 1e-9
    assert np.all(history.age_by_client > 0)
    assert np.all(history.age_by_client <= history.virtual_time)
    assert sum(history.fates.values()) + history.open_jobs == history.jobs
    assert 0 <= history.open_jobs < history.jobs
    assert history.merged_by_client.sum() == history.reports_used
    assert history.fates["refused"] == 0


@every_hierarchy
def test_clients_come_and_go(policy: Hierarchy) -> None:
    who = replace(federation(), presence=OnOff(on=3.0, off=0.4))
    history = cafe.simulate(who, policy, task(), rounds=20, seed=5)
    assert history.updates > 0
    assert history.fates["absent"] + history.fates["crashed"] > 0


@every_hierarchy
def test_evaluation_does_not_change_the_run(policy: Hierarchy) -> None:
    quiet, measured = (HierarchyRun(federation(), policy, task(), seed=3) for _ in range(2))
    for _ in range(12):
        quiet.step()
        measured.step()
        measured.evaluate()
    assert_equal(quiet.history(), measured.history())


@every_hierarchy
def test_task_changes_only_the_bytes_in_the_books(policy: Hierarchy) -> None:
    what = task()
    who = replace(federation(), examples=what.shards.counts)
    trained = cafe.simulate(who, policy, what, rounds=15, seed=6)
    books = cafe.simulate(who, policy, rounds=15, seed=6)
    assert trained.bytes_up > 0
    for name in (f.name for f in fields(Outcome) if not f.name.startswith("bytes")):
        np.testing.assert_array_equal(trained.by_round[name], books.by_round[name], err_msg=name)


@every_hierarchy
def test_arguments_are_not_changed(policy: Hierarchy) -> None:
    who, what = federation(), task()
    rows, before = what.shards.rows.copy(), policy.identity
    cafe.simulate(who, policy, what, rounds=10)
    np.testing.assert_array_equal(what.shards.rows, rows)
    assert policy.identity == before
    np.testing.assert_array_equal(policy.assign(who), policy.assign(who))


@every_hierarchy
def test_recipes_are_values_with_text_and_identity(policy: Hierarchy) -> None:
    recipe: Callable[..., Any] = recipes()[policy.name]
    again = recipe(**policy.parameters)
    assert again == policy
    assert str(again) == str(policy)
    assert again.identity == policy.identity
    assert policy.edge.deadline == policy.parameters.get("deadline")
    others = [each for each in HIERARCHIES if each is not policy]
    assert policy not in others
    assert policy.identity not in [each.identity for each in others]


@every_hierarchy
def test_lost_clients_do_not_make_a_run_hang(policy: Hierarchy) -> None:
    """Half of all jobs crash: the deadline ends the rounds of edge servers."""
    history = cafe.simulate(federation(0.6), policy, rounds=20, crash=0.5, seed=1)
    assert history.updates > 0


@pytest.mark.parametrize(
    "place",
    [
        lambda policy: cafe.engine.Run(federation(), policy),
        lambda policy: cafe.Cluster(federation(), policy),
        lambda policy: cafe.engine.Run(federation(), lambda ledger, seen: policy),
        lambda policy: cafe.testing.check_policy(policy),
    ],
    ids=["run", "cluster", "controller", "check"],
)
def test_one_level_refuses_hierarchies(place: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError, match="two levels"):
        place(HIERARCHIES[0])
