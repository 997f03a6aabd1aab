"""The rules that every policy must keep: recipes and asynchronous schemes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
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
    whole: dict[str, Any] = {"federation": federation(), "rounds": 20, "seed": 3} | given
    return contract.CheckSetup(lambda: policy, task=what, **whole)


def test_every_recipe_has_an_entry() -> None:
    assert recipes().keys() == RECIPES.keys()
    assert all(p.name == name for name, some in RECIPES.items() for p in some)
    assert recipes() == {name: getattr(cafe.policies, name) for name in RECIPES}


@every_policy
def test_engine_and_reference_have_the_same_books(policy: Policy) -> None:
    contract.check_reference(setting(policy))
    lossy = setting(policy, federation=federation(0.7), rounds=40, crash=0.25)
    contract.check_reference(lossy)


@every_policy
def test_engine_and_reference_agree_with_presence(policy: Policy) -> None:
    coming = replace(federation(), presence=OnOff(on=3.0, off=0.4), per_step=0.03)
    what = task()  # an epoch has steps
    contract.check_reference(setting(policy, what, federation=coming))


def learns_the_same_model(policy: Policy, **changes: Any) -> None:
    who, what = federation(0.8), task(**changes)
    given = setting(policy, what, federation=who, rounds=15, crash=0.1, seed=11)
    contract.check_reference(given)


@over(EVERY + SEEING)
def test_engine_and_reference_learn_the_same_model(policy: Policy) -> None:
    learns_the_same_model(policy)


# A server optimiser sees only the merged update, so each is tested with every second policy.
_OPTIMISABLE = [policy for policy in EVERY + SEEING if policy.server is None]


@over(_OPTIMISABLE[::2])
def test_engine_and_reference_learn_the_same_model_with_yogi(policy: Policy) -> None:
    server = Adam(rate=0.05, yogi=True)
    learns_the_same_model(policy, rate=LearningRate(3.0, 9.0), per="update", server=server)


@over(_OPTIMISABLE[1::2])
def test_engine_and_reference_learn_the_same_model_with_momentum(policy: Policy) -> None:
    server = Momentum(0.5, 0.5)
    learns_the_same_model(policy, batch=None, rate=LearningRate(3.0, 9.0), server=server)


@over(TIMED)
def test_contract_holds_with_a_step_time(policy: Policy) -> None:
    who = replace(federation(), per_step=0.04)
    contract.check_reference(setting(policy, task(), federation=who))
    contract.check_saving(setting(policy, task(), federation=who, rounds=12))
    contract.check_live(setting(policy, task(), federation=who, rounds=12))


@every_policy
def test_time_and_ages_are_consistent(policy: Policy) -> None:
    contract.check_time(setting(policy, rounds=50))
    history = cafe.simulate(federation(), policy, rounds=50, seed=2)
    assert np.all(history.age_by_client > 0)
    assert np.all(history.age_by_client <= history.virtual_time)


@every_policy
def test_dropout_applies_once(policy: Policy) -> None:
    """Each invited client is absent with a probability; if it is present, it may crash."""
    who = cafe.Federation(CLIENTS, cafe.Exponential(50.0), availability=0.7)
    run, jobs = Run(who, policy, seed=4, crash=0.2), 0
    while jobs < 2500 and len(run.outcomes) < 1000:
        jobs += run.step().invited
    history = run.history()
    assert history.fates["refused"] == 0
    # With 2500 jobs, five errors are 0.046 and 0.035. If crashes applied to absent clients too, or
    # absence applied twice, the shares would differ by 0.06 and by 0.21.
    for fate, share in (("absent", 0.3), ("crashed", 0.7 * 0.2)):
        # If a policy closes at once, some jobs that would crash later are cancelled instead.
        error = 5 * np.sqrt(share * (1 - share) / jobs)
        measured = history.fates[fate] / jobs
        assert 0 < measured < share + error
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
    for _ in range(20):
        mine, theirs = trained.step(), books.step()
        theirs = replace(theirs, bytes_down=mine.bytes_down, bytes_up=mine.bytes_up)
        same.same_outcome(mine, theirs, ("a run with a task", "a run without"))


@over(EVERY + SEEING)
def test_saved_and_restored_run_equals_an_uninterrupted_one(policy: Policy) -> None:
    what = task(server=Adam() if policy.server is None else None)
    given = setting(policy, what, federation=federation(0.8), rounds=15, seed=6, crash=0.1)
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
    assert policy.deadline == policy.parameters.get("deadline")


@pytest.mark.parametrize("recipe", recipes().values(), ids=list(recipes()))
def test_misspelt_parameters_are_refused(recipe: Callable[..., Policy]) -> None:
    with pytest.raises(InputError, match=r"no argument 'dedline'\. Did you mean 'deadline'"):
        recipe(dedline=1.0)
