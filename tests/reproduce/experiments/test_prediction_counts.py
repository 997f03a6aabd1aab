"""Predictions are counted at every evaluation, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.data import Examples
from cafe.learn.mlp import MLP
from cafe.reproduce.experiments.prediction_counts import CountingMLP, predictions, run_counting
from cafe.reproduce.trials import Trial, run_trial

FEW = {"run.evaluate_every": 2, "learner.hidden": [8]}


def test_predictions_of_a_network_by_hand() -> None:
    """One hidden unit of each sign: it is 1 for x = 1 and 0 for x = -1, so classes 1 and 0."""
    net = MLP(1, 2, hidden=(1,))
    model = np.array([1.0, 0.0, 0.0, 2.0, 0.5, 0.0], np.float32)  # 1x + 0; (0, 2) h + (0.5, 0)
    x = np.array([[1.0], [-1.0], [0.2]], np.float32)
    # The scores of class 0 are 0.5 everywhere, those of class 1 are 2, 0 and 0.4.
    assert predictions(net, model, x).tolist() == [1, 0, 0]


@pytest.mark.parametrize("hidden", [(), (7,), (7, 5, 4)])
def test_predictions_have_the_accuracy_of_the_learner(hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    data = Examples(rng.standard_normal((200, 6)).astype(np.float32), rng.integers(0, 4, 200))
    net = CountingMLP(6, 4, hidden, test=data)
    model = net.start(rng) + rng.standard_normal(net.size).astype(np.float32)
    score = net.score(model, data)
    found = predictions(net, model, data.x)
    assert score == MLP(6, 4, hidden).score(model, data)
    assert np.mean(found == data.y) == pytest.approx(score.accuracy)
    net.score(model, data.take(np.arange(10)))  # other examples are not counted
    assert len(net.counts) == 1
    assert net.counts[0].tolist() == [int(np.sum(found == label)) for label in range(4)]


@pytest.mark.slow
@pytest.mark.usefixtures("mnist")
def test_counting_does_not_change_a_run() -> None:
    trial = Trial("table-awu", {"share": 0.05, "policy": "mcu"}, 3, "mcu", FEW, 5)
    run, *evaluations = run_counting(trial)
    assert run["accuracy"] == run_trial(trial).accuracy
    assert [row["round"] for row in evaluations] == [2, 4, 5]
    assert evaluations[-1]["accuracy"] == run["accuracy"]
    assert all(0.1 <= row["commonest"] <= 1.0 for row in evaluations)
