"""The accuracy for each client, by hand: from the accuracy of each class that it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data import Examples, Shards
from cafe.engine.client_accuracy import accuracy_by_class, accuracy_by_client
from cafe.learn.base import Score
from cafe.learn.linear import Ridge
from tests.support.runs import federation, small_task


class Fixed:
    """A learner that predicts the class of each example in its first feature, and counts calls."""

    def score(self, model: Any, data: Examples) -> Score:
        right = np.round(data.x[:, 0]).astype(int) == data.y
        return Score(1.0, float(right.mean()))


def test_accuracy_of_each_class() -> None:
    """Class 0: 3 of 4 right; class 1: none of 1; class 2 does not occur; class 3: 1 of 2."""
    y = [0, 0, 0, 0, 1, 3, 3]
    predicted = [0, 0, 0, 1, 0, 3, 0]
    asked = Examples(np.array(predicted, dtype=float)[:, None], np.array(y))
    found = accuracy_by_class(Fixed(), None, asked)  # type: ignore[arg-type]
    assert found is not None
    assert found.tolist()[:2] == [0.75, 0.0]
    assert np.isnan(found[2])
    assert found[3] == 0.5


def test_accuracy_for_each_client() -> None:
    """Clients hold the classes 0 0 0 1, then 1, then 2 (unknown), then 0 and 2."""
    y = np.array([0, 0, 0, 1, 1, 2, 0, 2])
    shards = Shards.of([np.arange(4), np.array([4]), np.array([5]), np.array([6, 7])])
    task = cafe.Task(Examples(np.ones((8, 1)), y), shards, Ridge(1, l2=0.1))
    found = accuracy_by_client(task, np.array([0.8, 0.4]))
    assert found[0] == pytest.approx((3 * 0.8 + 0.4) / 4)
    assert found[1] == 0.4
    assert np.isnan(found[2])
    assert found[3] == 0.8  # of its examples of a known class


def test_clients_with_all_classes_have_the_accuracy_of_the_run() -> None:
    """Each client of the task holds two examples of each of three equally frequent classes."""
    history = cafe.simulate(
        federation(), cafe.policies.mcu(quorum=5, deadline=0.7), small_task(), rounds=20
    )
    assert history.accuracy_by_client is not None
    assert history.accuracy is not None
    assert history.accuracy_by_client == pytest.approx(np.full(20, history.accuracy))


def test_models_without_classes_or_without_updates_have_none() -> None:
    values = Examples(np.ones((20, 1)), np.ones(20))
    task = cafe.Task(values, Shards(np.arange(20), np.arange(21)), Ridge(1, l2=0.1), batch=None)
    policy = cafe.policies.mcu(quorum=5, deadline=0.7)
    assert cafe.simulate(federation(), policy, task, rounds=5).accuracy_by_client is None
    never = cafe.policies.mcu(quorum=20, deadline=0.01)
    history = cafe.simulate(federation(), never, small_task(), rounds=5)
    assert (history.updates, history.accuracy_by_client) == (0, None)
    assert cafe.simulate(federation(), policy, rounds=5).accuracy_by_client is None


def test_it_is_that_of_the_last_model() -> None:
    run = cafe.engine.Run(
        federation(), cafe.policies.mcu(quorum=5, deadline=0.7), small_task(), seed=1
    )
    while run.history().updates < 3:
        run.step()
    run.evaluate_clients()
    assert run.history().accuracy_by_client is not None
    run.step()
    changed = run.history().updates > 3
    assert (run.history().accuracy_by_client is None) == changed
    with pytest.raises(cafe.errors.InputError, match="no model to evaluate"):
        cafe.engine.Run(federation(), cafe.policies.mcu(quorum=5, deadline=0.7)).evaluate_clients()
