"""Which recipes weigh reports by size, and what work they give to clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.learn.linear import Logistic
from cafe.policies import (
    age_of_update,
    energy_harvesting,
    fedadam,
    fedasync,
    fedavg,
    fedbuff,
    fedprox,
    fedtune,
    fedyogi,
    flanp,
    fleet,
    hierarchical,
    li_sampling,
    oort,
    over_selection,
    parameter_freezing,
    refl,
    salvage,
    scaffold,
    tifl,
    timely,
    unbiased_age,
)
from cafe.rounds import Policy
from tests.support.federations import taking
from tests.support.ledgers import ledger_of
from tests.support.vectors import points

BY_SIZE: list[Policy] = [
    fedadam(fraction=1.0),
    fedavg(fraction=1.0),
    fedprox(fraction=1.0, epochs=1),
    fedtune(cohort=3, epochs=1),
    fedyogi(fraction=1.0),
    oort(goal=3, preferred=1.0, extra=1.0),
    over_selection(goal=3, extra=1.0, deadline=2.0),
    tifl(tiers=3, cohort=3),
]
EQUAL: list[Policy] = [
    age_of_update(channels=3),
    energy_harvesting(cohort=3),
    fedbuff(concurrency=3, goal=3),
    flanp(threshold=1e-9),
    parameter_freezing(deadline=2.0),
    refl(goal=3, extra=1.0),
    scaffold(fraction=1.0),
    timely(cohort=3, goal=3),
    unbiased_age(deadline=2.0),
]


def three_clients() -> cafe.Task:
    """Clients with 1, 3 and 6 examples."""
    rng = np.random.default_rng(3)
    data = Examples(rng.normal(size=(10, 2)).astype(np.float32), np.arange(10) % 2)
    shards = Shards.of(np.split(np.arange(10), [1, 4]))
    return cafe.Task(data, shards, Logistic(2, 2, l2=0.1), batch=None, rate=0.1)


@pytest.mark.parametrize(
    ("policy", "weights"),
    [(p, [0.1, 0.3, 0.6]) for p in BY_SIZE] + [(p, [1 / 3] * 3) for p in EQUAL],
    ids=lambda each: each.name if isinstance(each, Policy) else None,
)
def test_weights_of_three_reports(policy: Policy, weights: list[float]) -> None:
    history = cafe.simulate(taking(1.0, 1.0, 1.0), policy, three_clients(), rounds=1)
    np.testing.assert_allclose(history.weight_by_client, weights)


@pytest.mark.parametrize("policy", [*BY_SIZE, *EQUAL, li_sampling(cohort=3)], ids=str)
def test_sizes_count_once(policy: Policy) -> None:
    """They are in the weights of the reports or, if these are equal, in the objectives."""
    work = policy.invite(ledger_of(3), np.random.default_rng(0)).work
    assert work.scaled is ("sizes" not in policy.needs)


def test_sizes_count_once_in_asynchronous_schemes() -> None:
    for policy in (fedasync(concurrency=2), fleet(concurrency=2)):
        assert policy.invite(ledger_of(3), np.random.default_rng(0)).work.scaled


def test_sizes_count_once_in_a_hierarchy() -> None:
    """Clients at 1 and 5 with 1 and 3 examples; a step goes half of the way.

    In one cluster the objectives have the factors 1/2 and 3/2, and the mean of the updates is
    (1/4 + 15/4) / 2. In two clusters the first reports its own client, without a factor.
    """
    what = points(1.0, 5.0, copies=[1, 3])
    for clusters, model in ((1, 2.0), (2, 0.5)):
        policy = hierarchical(clusters=clusters, goal=2 // clusters, mixing=1.0)
        history = cafe.simulate(taking(1.0, 1.5), policy, what, rounds=1)
        assert history.model == pytest.approx([model])


STEPS: list[tuple[Callable[..., Policy], dict[str, Any]]] = [
    (age_of_update, {"channels": 2}),
    (energy_harvesting, {"cohort": 2}),
    (fedadam, {}),
    (fedasync, {"concurrency": 2}),
    (fedbuff, {"concurrency": 2}),
    (fedyogi, {}),
    (flanp, {"threshold": 1.0}),
    (fleet, {"concurrency": 2}),
    (li_sampling, {}),
    (salvage, {"deadline": 1.0}),
    (scaffold, {}),
    (unbiased_age, {"deadline": 1.0}),
]


@pytest.mark.parametrize(("recipe", "given"), STEPS)
def test_clients_take_the_given_steps(recipe: Callable[..., Policy], given: dict[str, Any]) -> None:
    work = recipe(**given, steps=3).invite(ledger_of(12), np.random.default_rng(0)).work
    assert (work.steps, work.epochs) == (3, None)


def test_usual_steps_of_li_sampling() -> None:
    work = li_sampling().invite(ledger_of(12), np.random.default_rng(0)).work
    assert (work.steps, work.epochs) == (5, None)


@pytest.mark.parametrize(
    "policy",
    [
        oort(goal=2, preferred=1.0, extra=1.0, deadline=1.5, quorum=2),
        refl(goal=2, extra=1.0, deadline=1.5, quorum=2),
    ],
    ids=lambda policy: policy.name,
)
def test_a_round_without_its_quorum_fails_at_the_deadline(policy: Policy) -> None:
    """Clients take 1 and 5."""
    history = cafe.simulate(taking(1.0, 5.0), policy, cafe.testing.check.small_task(2), rounds=1)
    assert history.by_round["closed"].tolist() == [1.5]
    assert history.by_round["reports"].tolist() == [1]
    assert history.updates == 0
