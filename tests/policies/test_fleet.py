"""AdaSGD: dampening, percentile and boost worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cafe
from cafe.data import Examples, Shards
from cafe.engine import Run
from cafe.errors import InputError
from cafe.learn.linear import Logistic
from cafe.policies import fleet as recipe
from cafe.policies.fleet import Adaptive, bhattacharyya, dampening, remember, staleness_percentile
from tests.support.federations import taking


@pytest.mark.parametrize(
    ("threshold", "staleness", "expected"),
    [
        # At half of the threshold it is that of DynSGD, 1 / (s + 1).
        (4.0, [0, 2, 4, 6], [1, 1 / 3, 1 / 9, 1 / 27]),
        (2.0, [0, 1, 2, 3], [1, 1 / 2, 1 / 4, 1 / 8]),
        (6.0, [3, 6], [1 / 4, 1 / 16]),
        (1.0, [0.5, 1], [2 / 3, 4 / 9]),
        (0.0, [0, 1, 3], [1, 1 / 2, 1 / 4]),
    ],
)
def test_dampening(threshold: float, staleness: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(dampening(np.array(staleness, dtype=float), threshold), expected)


@pytest.mark.parametrize(
    ("counts", "percentile", "expected"),
    [
        ([], 99.7, 0.0),
        ([3], 99.7, 0.0),
        ([990, 5, 2, 3], 99.7, 2.0),  # 997 of 1000 were at most 2
        ([990, 5, 1, 4], 99.7, 3.0),
        ([1, 1, 1, 1], 50.0, 1.0),
        ([1, 1, 1, 1], 51.0, 2.0),
        ([1, 0, 0, 1], 100.0, 3.0),
        ([55, 45], 55.0, 0.0),  # 0.55 * 100 is above 55 in floating point
    ],
)
def test_percentile_of_past_staleness(
    counts: list[int], percentile: float, expected: float
) -> None:
    assert staleness_percentile(counts, percentile) == expected


def test_similarity_of_labels() -> None:
    labels = np.array([[5, 0], [2, 2], [0, 7], [9, 3], [0, 0]])
    # Against 1/2 and 1/2: sqrt(1/2), 1, sqrt(1/2), (sqrt(3) + 1) / sqrt(8); none without examples.
    half = np.sqrt(0.5)
    expected = [half, 1.0, half, (np.sqrt(3) + 1) / np.sqrt(8), 1.0]
    np.testing.assert_allclose(bhattacharyya(labels, np.array([10.0, 10.0])), expected)
    np.testing.assert_allclose(bhattacharyya(labels[:3], np.array([4.0, 0.0])), [1, half, 0])


counts = st.lists(st.integers(0, 50), min_size=3, max_size=3)


@given(
    late=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    own=counts,
    past=counts,
    staleness=st.lists(st.integers(0, 9), max_size=12),
)
def test_boost_is_never_above_one(
    late: list[int], own: list[int], past: list[int], staleness: list[int]
) -> None:
    """Nor is it ever below the dampening; and a client like all others has no boost."""
    ledger: Any = SimpleNamespace(version=40, state={"staleness": staleness, "labels": past})
    version = 40 - np.array(late)
    reports: Any = SimpleNamespace(version=version, labels=np.array([own] * len(late)))
    boosted = Adaptive(99.7, True)(ledger, reports).coefficient
    plain = Adaptive(99.7, False)(ledger, reports).coefficient
    assert np.all(boosted <= 1)
    assert np.all(boosted >= plain * (1 - 1e-12))
    reports.labels = np.array([past] * len(late))
    np.testing.assert_allclose(Adaptive(99.7, True)(ledger, reports).coefficient, plain)


def test_weights_of_a_run() -> None:
    """Client 0 reports at 1, 2, 3, 4 and 5, client 1 at 2.5 and 5. Their staleness, in order of
    arrival, is 0, 0, 2 (client 1), 1, 0, 0, 3 (client 1).

    With the 100th percentile the threshold is 0 for the first three, then 2. So the weights are 1,
    1, 1/3 (as in DynSGD), 1/2, 1, 1 and (1/2)^3.
    """
    policy = recipe(concurrency=2, percentile=100.0, similarity=False)
    weights = [np.zeros(2)]
    for rounds in range(1, 8):
        weights.append(cafe.simulate(taking(1.0, 2.5), policy, rounds=rounds).weight_by_client)
    seen = np.diff(weights, axis=0)
    np.testing.assert_allclose(seen[:, 0], [1, 1, 0, 1 / 2, 1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(seen[:, 1], [0, 0, 1 / 3, 0, 0, 0, 1 / 8], atol=1e-12)


def test_rare_labels_are_boosted() -> None:
    """Client 0 has three examples of class 0, client 1 three of class 1.

    At 2.5 only class 0 has been seen: the similarity of client 1 is 0, and its weight 1 and not
    1/3. At 3, two thirds of the labels are of class 0: the weight of client 0 is
    1/2 / sqrt(2/3).
    """
    data = Examples(np.ones((6, 2), np.float32), np.array([0, 0, 0, 1, 1, 1]))
    shards = Shards.of([np.arange(3), np.arange(3, 6)])
    what = cafe.Task(data, shards, Logistic(2, 2, l2=0.1))
    run = Run(taking(1.0, 2.5), recipe(concurrency=2, percentile=100.0), what)
    for _ in range(4):
        run.step()
    expected = [2 + 0.5 / np.sqrt(2 / 3), 1.0]
    np.testing.assert_allclose(run.history().weight_by_client, expected)
    assert run.ledger.state == {"staleness": [2, 1, 1], "labels": [9, 3]}
    assert json.loads(json.dumps(run.ledger.state)) == run.ledger.state


def test_state_stays_small() -> None:
    ledger: Any = SimpleNamespace(version=100_001, state=None)
    reports: Any = SimpleNamespace(version=np.array([100_000, 99_000, 98_999, 0]), labels=None)
    closed: Any = SimpleNamespace(reports=reports)
    state: Any = remember(ledger, SimpleNamespace(), closed)  # type: ignore[arg-type]
    assert len(state["staleness"]) == 1001
    assert (state["staleness"][0], state["staleness"][1000]) == (1, 3)
    failed: Any = SimpleNamespace(reports=None)
    ledger.state = state
    assert remember(ledger, SimpleNamespace(), failed) is state  # type: ignore[arg-type]


def test_updates_of_a_goal_are_added_up() -> None:
    policy = recipe(concurrency=3, goal=3, similarity=False)
    history = cafe.simulate(taking(1.0, 1.1, 1.2), policy, rounds=1)
    assert history.weight_by_client.tolist() == [1, 1, 1]


def test_deadline_ends_a_wait_for_the_goal() -> None:
    """Client 0 reports at 1 and 2, client 1 at 50. At 2.5 two of the three reports are there."""
    policy = recipe(concurrency=2, goal=3, similarity=False, deadline=2.5)
    history = cafe.simulate(taking(1.0, 50.0), policy, rounds=1)
    assert history.by_round["closed"].tolist() == [2.5]
    assert history.weight_by_client.tolist() == [2, 0]


def test_percentile_above_100_is_refused() -> None:
    with pytest.raises(InputError, match="percentile must be at most 100"):
        recipe(concurrency=2, percentile=101)


def test_similarity_needs_labels() -> None:
    assert recipe(concurrency=2).needs == {"labels"}
    assert not recipe(concurrency=2, similarity=False).needs
    with pytest.raises(InputError, match="needs labels"):
        cafe.simulate(taking(1.0, 2.0), replace(recipe(concurrency=2)), rounds=1)
