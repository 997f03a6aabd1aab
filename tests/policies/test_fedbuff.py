"""FedBuff: the weight of each report worked out by hand, and equality with federated averaging."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data import Examples, Shards
from cafe.errors import InfeasibleError, InputError
from cafe.learn.linear import Logistic
from cafe.policies import fedavg, fedbuff
from tests.support.federations import taking


def equal_clients(clients: int, batch: int | None = 2) -> cafe.Task:
    """Clients with five examples each."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(5 * clients, 4)).astype(np.float32)
    shards = Shards.of([*np.arange(5 * clients).reshape(clients, 5)])
    return cafe.Task(
        Examples(x, np.arange(5 * clients) % 3), shards, Logistic(4, 3, l2=0.1), batch=batch
    )


@pytest.mark.parametrize("work", [{}, {"epochs": 2}, {"steps": 3}])
def test_first_update_of_all_clients_is_that_of_federated_averaging(work: dict[str, Any]) -> None:
    """No report is stale yet, and no client is fast enough to report twice. The bits are equal."""
    who, what = taking(1.0, 1.9, 1.3, 1.6, 1.1), equal_clients(5)
    buffered = cafe.simulate(who, fedbuff(concurrency=5, goal=5, **work), what, rounds=1)
    averaged = cafe.simulate(who, fedavg(fraction=1.0, **work), what, rounds=1)
    assert buffered.model is not None
    assert averaged.model is not None
    assert buffered.model.tobytes() == averaged.model.tobytes()
    assert np.any(buffered.model != 0)


def test_updates_without_staleness_are_those_of_federated_averaging() -> None:
    """All clients take 1. With a maximum staleness of 0, an update has one report of each client.

    Clients 0 and 1 report first and are replaced before the update, so their next reports, at 2,
    are too old. They begin anew, and the second update is at 3. The batches are all examples, so
    that they do not depend on the invitation. The order of the reports differs, hence the rounding.
    """
    who, what = taking(1.0, 1.0, 1.0), equal_clients(3, batch=None)
    policy = fedbuff(concurrency=3, goal=3, max_staleness=0, steps=2)
    buffered = cafe.simulate(who, policy, what, rounds=4)
    averaged = cafe.simulate(who, fedavg(fraction=1.0, steps=2), what, rounds=4)
    assert buffered.by_round["closed"].tolist()[:3] == [1.0, 3.0, 5.0]
    assert buffered.model is not None
    assert averaged.model is not None
    np.testing.assert_allclose(buffered.model, averaged.model, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("options", "closed", "weights"),
    [
        # The version is 0, 1 and 2 when the reports at 1, 2 and 2.5 arrive.
        ({"goal": 1}, [1.0, 2.0, 2.5], [2.0, 1 / np.sqrt(3)]),
        ({"goal": 1, "power": 1.0}, [1.0, 2.0, 2.5], [2.0, 1 / 3]),
        ({"goal": 1, "power": 0.0}, [1.0, 2.0, 2.5], [2.0, 1.0]),
        ({"goal": 1, "server_rate": 0.3}, [1.0, 2.0, 2.5], [0.6, 0.3 / np.sqrt(3)]),
        # The report at 2.5 is two updates old, and neither used nor counted: the next is at 3.
        ({"goal": 1, "max_staleness": 1}, [1.0, 2.0, 3.0], [3.0, 0.0]),
        ({"goal": 1, "max_staleness": 2}, [1.0, 2.0, 2.5], [2.0, 1 / np.sqrt(3)]),
        # The first update has client 0 twice, the second client 1 (one update old) and client 0.
        ({"goal": 2}, [2.0, 3.0], [3 / 2, 1 / np.sqrt(2) / 2]),
    ],
)
def test_reports_are_weighted_by_staleness(
    options: dict[str, Any], closed: list[float], weights: list[float]
) -> None:
    """Client 0 reports at 1, 2, 3; client 1, which started from version 0, reports at 2.5."""
    policy = fedbuff(concurrency=2, **options)
    history = cafe.simulate(taking(1.0, 2.5), policy, rounds=len(closed))
    assert history.by_round["closed"].tolist() == closed
    np.testing.assert_allclose(history.weight_by_client, weights)


def test_client_that_reports_is_replaced_at_once() -> None:
    """Four reports at 1; the clients that replace them begin at 1 and report at 2."""
    policy = fedbuff(concurrency=4, goal=6)
    history = cafe.simulate(taking(*[1.0] * 20), policy, rounds=2)
    assert history.by_round["closed"].tolist() == [2.0, 3.0]
    assert history.by_round["invited"].tolist() == [9, 6]
    assert (history.jobs, history.open_jobs, history.waste) == (15, 3, 0.0)


def test_deadline_ends_a_round_with_the_reports_that_have_arrived() -> None:
    """Client 0 reports at 1 and 2. At 2.5 two of the three reports are there, with 1/3 each."""
    policy = fedbuff(concurrency=2, goal=3, deadline=2.5)
    history = cafe.simulate(taking(1.0, 50.0), policy, rounds=1)
    assert history.by_round["closed"].tolist() == [2.5]
    assert history.by_round["succeeded"].tolist() == [True]
    np.testing.assert_allclose(history.weight_by_client, [2 / 3, 0])


def test_deadline_frees_lost_clients() -> None:
    """Of 10 jobs 8 are lost: often all four clients at work are, before the second report."""
    who = cafe.Federation(8, cafe.Exponential(1.0))
    with pytest.raises(InfeasibleError, match="would never end"):
        cafe.simulate(who, fedbuff(concurrency=4, goal=2), rounds=200, crash=0.8)
    policy = fedbuff(concurrency=4, goal=2, deadline=20.0)
    history = cafe.simulate(who, policy, rounds=200, crash=0.8)
    assert (history.by_round["closed"] - history.by_round["opened"]).max() == pytest.approx(20.0)
    assert history.updates > 100


@pytest.mark.parametrize("name", ["concurrency", "goal", "max_staleness"])
def test_wrong_numbers_are_explained(name: str) -> None:
    wrong: dict[str, Any] = {"concurrency": 3, "goal": 2} | {name: 1.5}
    with pytest.raises(InputError, match=f"{name} must be a whole number"):
        fedbuff(**wrong)
