"""Anarchic federated averaging: models and weights worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data import Examples, Shards
from cafe.errors import InputError
from cafe.learn.quadratic import Quadratic
from cafe.policies import anarchic
from tests.support.federations import taking


def points(*at: float) -> cafe.Task:
    """Each client has one point; a step goes half of the way to it. The model starts at 0."""
    data = Examples(np.array(at)[:, None], np.zeros(len(at)))
    return cafe.Task(
        data, Shards.of([np.array([k]) for k in range(len(at))]), Quadratic(1), rate=0.5
    )


def models(policy: cafe.Policy, who: cafe.Federation, what: cafe.Task, rounds: int) -> list[float]:
    found = []
    for count in range(1, rounds + 1):
        history = cafe.simulate(who, policy, what, rounds=count)
        assert history.model is not None
        found.append(float(history.model[0]))
    return found


def test_silo_merges_the_mean_of_the_last_updates() -> None:
    """Client 0 reports at 1, 2 and 3, client 1 at 2.5, client 2 never.

    Client 0 is at 1: its updates are 1/2, 1/2 (1 - 1/6) = 5/12, then 1/2 (1 - 11/36) = 25/72.
    Client 1 is at -1 and starts from 0: its update is -1/2. The models are
    1/6, 1/6 + 5/36 = 11/36, 11/36 + (5/12 - 1/2) / 3 = 10/36, 10/36 + (25/72 - 1/2) / 3 = 49/216.
    """
    policy = anarchic(concurrency=3, goal=1, setting="silo", most_steps=1)
    found = models(policy, taking(1.0, 2.5, 99.0), points(1.0, -1.0, 7.0), 4)
    assert found == pytest.approx([1 / 6, 11 / 36, 10 / 36, 49 / 216])


def test_device_merges_the_mean_of_the_newest_updates() -> None:
    """As above without the memory: 1/2, then 1/2 + 1/4 = 3/4, then 3/4 - 1/2, then 1/4 + 1/8."""
    policy = anarchic(concurrency=3, goal=1, most_steps=1)
    found = models(policy, taking(1.0, 2.5, 99.0), points(1.0, -1.0, 7.0), 4)
    assert found == pytest.approx([1 / 2, 3 / 4, 1 / 4, 3 / 8])


@pytest.mark.parametrize(
    ("setting", "first"),
    # Two steps go 3/4 of the way to 1. Their mean is 3/8; "silo" divides it by two clients.
    [("device", 3 / 8), ("silo", 3 / 16)],
)
def test_updates_are_divided_by_their_steps(setting: Any, first: float) -> None:
    policy = anarchic(concurrency=2, goal=1, setting=setting, least_steps=2, most_steps=2)
    assert models(policy, taking(1.0, 9.0), points(1.0, 0.0), 1) == pytest.approx([first])


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        # The reports of the updates: client 0 twice, then client 1 and client 0.
        ({}, [3 / 2, 1 / 2]),
        ({"server_rate": 3.0}, [9 / 2, 3 / 2]),
        ({"least_steps": 4, "most_steps": 4}, [3 / 8, 1 / 8]),
        # Only the last report of client 0 counts in the first update; and 1/2 each in the second.
        ({"setting": "silo"}, [1 / 2 + 1 / 2, 1 / 2]),
        ({"setting": "silo", "least_steps": 5, "most_steps": 5}, [1 / 5, 1 / 10]),
    ],
)
def test_weights_of_reports(options: dict[str, Any], weights: list[float]) -> None:
    """Client 0 reports at 1, 2 and 3, client 1 at 2.5; two reports make an update."""
    policy = anarchic(concurrency=2, goal=2, **{"most_steps": 1} | options)
    history = cafe.simulate(taking(1.0, 2.5), policy, rounds=2)
    assert history.by_round["closed"].tolist() == [2.0, 3.0]
    np.testing.assert_allclose(history.weight_by_client, weights)


@pytest.mark.parametrize(("setting", "weights"), [("device", [2 / 3, 0.0]), ("silo", [1 / 2, 0.0])])
def test_deadline_ends_a_round_with_the_same_coefficients(
    setting: Any, weights: list[float]
) -> None:
    """Client 0 reports at 1 and 2. At 2.5 two of the three reports are there.

    "device" still divides by three reports. "silo" divides by two clients, and uses the last one.
    """
    policy = anarchic(concurrency=2, goal=3, setting=setting, most_steps=1, deadline=2.5)
    history = cafe.simulate(taking(1.0, 50.0), policy, rounds=1)
    assert history.by_round["closed"].tolist() == [2.5]
    np.testing.assert_allclose(history.weight_by_client, weights)


def test_silo_uses_a_report_until_a_newer_one_arrives() -> None:
    """Client 1 reports at 2.5 and 5; its first report is used at 2.5, 3 and 4."""
    policy = anarchic(concurrency=2, goal=1, setting="silo", most_steps=1)
    history = cafe.simulate(taking(1.0, 2.5), policy, rounds=5)
    assert history.by_round["closed"].tolist() == [1.0, 2.0, 2.5, 3.0, 4.0]
    np.testing.assert_allclose(history.weight_by_client, [5 / 2, 3 / 2])
    # Reused: client 0's report at 2.5, and client 1's at 3 and 4.
    assert (history.reports_reused, history.waste) == (3, 0.0)


def test_clients_choose_their_numbers_of_steps() -> None:
    """A step takes a second, so response times show the steps: 2 to 4, equally often."""
    who = cafe.Federation(30, cafe.Constant(0.5), per_step=1.0)
    policy = anarchic(concurrency=1, goal=1, least_steps=2, most_steps=4)
    history = cafe.simulate(who, policy, rounds=900)
    took = np.round(history.by_round["closed"] - history.by_round["opened"] - 0.5).astype(int)
    values, count = np.unique(took, return_counts=True)
    assert values.tolist() == [2, 3, 4]
    assert np.all(np.abs(count - 300) < 71)  # five standard deviations of 14.1


def test_wrong_limits_are_explained() -> None:
    with pytest.raises(InputError, match=r"most_steps must be at least least_steps \(5\). Got 2"):
        anarchic(concurrency=2, least_steps=5, most_steps=2)
