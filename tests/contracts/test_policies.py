"""The rules that every policy must keep: recipes and asynchronous schemes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.policies import recipes
from cafe.presence import OnOff
from cafe.rounds import Policy
from cafe.testing import contract
from cafe.testing.comparison import Check
from tests.support.policies import (
    CLIENTS,
    EVERY,
    RECIPES,
    SEEING,
    TIMED,
    every_policy,
    federation,
    over,
    task,
)

pytestmark = pytest.mark.slow


def setting(policy: Policy, what: cafe.Task | None = None, **given: Any) -> contract.CheckSetup:
    whole: dict[str, Any] = {"federation": federation(), "rounds": 30, "seed": 3} | given
    return contract.CheckSetup(lambda: policy, task=what, **whole)


def test_every_recipe_has_an_entry() -> None:
    assert recipes().keys() == RECIPES.keys()
    assert all(p.name == name for name, some in RECIPES.items() for p in some)
    assert recipes() == {name: getattr(cafe.policies, name) for name in RECIPES}


@every_policy
@pytest.mark.parametrize(("crash", "availability"), [(0.0, 1.0), (0.25, 0.7)])
def test_engine_and_reference_have_the_same_books(
    policy: Policy, crash: float, availability: float
) -> None:
    lossy = setting(policy, federation=federation(availability), rounds=70, crash=crash)
    contract.check_reference(lossy)
    contract.check_fates(lossy)


@every_policy
def test_engine_and_reference_agree_with_presence(policy: Policy) -> None:
    coming = replace(federation(), presence=OnOff(on=3.0, off=0.4), per_step=0.03)
    what = task()  # an epoch has steps
    contract.check_reference(setting(policy, what, federation=coming))
    contract.check_fates(setting(policy, what, federation=coming))


@over(EVERY + SEEING)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rate": LearningRate(3.0, 9.0), "per": "update", "server": Adam(rate=0.05, yogi=True)},
        {"batch": None, "rate": LearningRate(3.0, 9.0), "server": Momentum(0.5, 0.5)},
    ],
    ids=["plain", "yogi", "momentum"],
)
@pytest.mark.slow
def test_engine_and_reference_learn_the_same_model(policy: Policy, changes: dict[str, Any]) -> None:
    who, what = federation(0.8), task(**changes)
    contract.check_reference(setting(policy, what, federation=who, crash=0.1, seed=11))


@over(TIMED)
def test_contract_holds_with_a_step_time(policy: Policy) -> None:
    who = replace(federation(), per_step=0.04)
    contract.check_reference(setting(policy, task(), federation=who))
    contract.check_saving(setting(policy, task(), federation=who, rounds=12))
    contract.check_live(setting(policy, task(), federation=who, rounds=12))


@every_policy
def test_crashed_and_absent_clients_are_counted(policy: Policy) -> None:
    history = cafe.simulate(federation(0.8), policy, rounds=150, seed=2, crash=0.1)
    assert history.fates["refused"] == 0
    assert history.fates["crashed"] > 0
    assert history.fates["absent"] > 0


@every_policy
def test_time_and_ages_are_consistent(policy: Policy) -> None:
    contract.check_time(setting(policy, rounds=100))
    history = cafe.simulate(federation(), policy, rounds=100, seed=2)
    assert np.all(history.age_by_client > 0)
    assert np.all(history.age_by_client <= history.virtual_time)


@every_policy
def test_dropout_applies_once(policy: Policy) -> None:
    """Each invited client is absent with a probability; if it is present, it may crash."""
    who = cafe.Federation(CLIENTS, cafe.Exponential(50.0), availability=0.7)
    history = cafe.simulate(who, policy, rounds=1000, seed=4, crash=0.2)
    jobs = history.jobs
    for fate, share in (("absent", 0.3), ("crashed", 0.7 * 0.2)):
        # If a policy closes at once, some jobs that would crash later are cancelled instead.
        error = 5 * np.sqrt(share * (1 - share) / jobs)
        measured = history.fates[fate] / jobs
        assert measured < share + error
        if history.fates["cancelled"] + history.fates["stale"] == 0 and not history.open_jobs:
            assert measured > share - error


@over(EVERY + SEEING)
def test_same_seed_gives_the_same_bytes(policy: Policy) -> None:
    contract.check_same_seed(setting(policy, task(), rounds=20))


@every_policy
def test_another_seed_gives_another_run(policy: Policy) -> None:
    one, other = (cafe.simulate(federation(), policy, rounds=20, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.by_round["work"], other.by_round["work"])


@every_policy
def test_evaluation_does_not_change_the_run(policy: Policy) -> None:
    contract.check_evaluation(setting(policy, task(), rounds=20))


@every_policy
def test_task_changes_only_the_bytes_in_the_books(policy: Policy) -> None:
    what = task()
    who = cafe.Federation.join(
        *(
            cafe.Federation(1, cafe.Exponential(1.0 + k / 9), 0.9, int(n))
            for k, n in enumerate(what.shards.counts)
        )
    )
    trained, books = (
        contract.CheckSetup(lambda: policy, who, given, seed=1).run() for given in (what, None)
    )
    same = Check(policy, "a task changes nothing in the books")
    for _ in range(30):
        mine, theirs = trained.step(), books.step()
        theirs = replace(theirs, bytes_down=mine.bytes_down, bytes_up=mine.bytes_up)
        same.same_outcome(mine, theirs, ("a run with a task", "a run without"))


@over(EVERY + SEEING)
def test_saved_and_restored_run_equals_an_uninterrupted_one(policy: Policy) -> None:
    what = task(server=Adam())
    given = setting(policy, what, federation=federation(0.8), rounds=24, seed=6, crash=0.1)
    contract.check_saving(given)


@every_policy
def test_decisions_do_not_change_their_arguments(policy: Policy) -> None:
    contract.check_arguments(setting(policy))


@every_policy
def test_decisions_cannot_see_the_future(policy: Policy) -> None:
    contract.check_future(setting(policy, federation=federation(0.9), crash=0.1))


@pytest.mark.parametrize("policy", [p for some in RECIPES.values() for p in some], ids=str)
def test_recipes_are_values_with_text_and_identity(policy: Policy) -> None:
    recipe = recipes()[policy.name]
    again = recipe(**policy.parameters)
    assert again == policy
    assert str(again) == str(policy)
    assert again.identity == policy.identity
    assert policy.deadline == policy.parameters["deadline"]


@pytest.mark.parametrize("recipe", recipes().values(), ids=list(recipes()))
def test_misspelt_parameters_are_refused(recipe: Callable[..., Policy]) -> None:
    with pytest.raises(InputError, match=r"no argument 'dedline'\. Did you mean 'deadline'"):
        recipe(dedline=1.0)
