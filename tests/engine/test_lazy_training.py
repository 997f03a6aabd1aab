"""Gradients are computed only for updates that are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Rows
from cafe.learn.linear import Logistic
from cafe.learn.local_steps import LocalSteps, Weights
from cafe.policies import agu, mcu
from tests.support.small_tasks import logistic_task


class Counting(Logistic):
    """Counts the examples whose gradient is taken."""

    def counted(self) -> int:
        return int(getattr(self, "_count", 0))

    def gradient(self, model: Any, data: Examples, rows: Rows, weight: Weights) -> Any:
        object.__setattr__(self, "_count", self.counted() + len(rows))
        return super().gradient(model, data, rows, weight)


def test_discarded_jobs_are_not_computed() -> None:
    """Late clients and failed rounds cost no gradient, nor do clients that crash."""
    who = cafe.Federation(30, cafe.Exponential(1.0))
    learner = Counting(3, 2, l2=0.1)
    history = cafe.simulate(
        who, mcu(quorum=14, deadline=0.5), logistic_task(30, learner), rounds=200, seed=1, crash=0.1
    )
    assert 0 < history.updates < history.rounds
    assert history.fates["late"] > 0
    assert history.fates["failed"] > 0
    assert learner.counted() == history.reports_used * 5


@pytest.mark.slow
def test_cost_is_proportional_to_the_successful_rounds() -> None:
    """MCU at M=35, T=0.3 succeeds in 2.8 % of rounds, and trains accordingly less than M=1."""
    who = cafe.Federation(100, cafe.Exponential(1.0))
    counts = {}
    for quorum in (1, 35):
        learner = Counting(3, 2, l2=0.1)
        cafe.simulate(
            who, mcu(quorum=quorum, deadline=0.3), logistic_task(100, learner), rounds=1500, seed=2
        )
        counts[quorum] = learner.counted()
    expected = {q: cafe.expect(who, quorum=q, deadline=0.3) for q in counts}
    share = {q: e.success_probability * e.reports_per_update for q, e in expected.items()}
    assert counts[35] / counts[1] == pytest.approx(share[35] / share[1], rel=0.4)
    assert counts[35] < 0.06 * counts[1]


def test_carried_work_is_computed_when_it_is_merged() -> None:
    who = cafe.Federation(30, cafe.Exponential(1.0))
    learner = Counting(3, 2, l2=0.1)
    policy = agu(quorum=14, deadline=0.5)
    history = cafe.simulate(who, policy, logistic_task(30, learner), rounds=200, seed=1)
    jobs = history.fates["fresh"]
    assert jobs > history.reports_used  # chains of several jobs were merged
    taken = learner.counted()
    assert taken <= 5 * 14 * jobs  # plain loops pad clients with few steps to the longest
    plain = Counting(3, 2, l2=0.1)
    cafe.simulate(who, mcu(quorum=14, deadline=0.5), logistic_task(30, plain), rounds=200, seed=1)
    assert plain.counted() < taken


def test_concatenated_steps_have_the_expected_shape() -> None:
    local = LocalSteps(np.zeros((2, 3, 4), dtype=np.intp), np.ones((2, 3, 4), dtype=np.float32),
                  np.ones((2, 3), dtype=np.float32))  # fmt: skip
    longer = local.then(
        LocalSteps(np.zeros((2, 1, 6), dtype=np.intp), np.ones((2, 1, 6), dtype=np.float32),
              np.ones((2, 1), dtype=np.float32))
    )  # fmt: skip
    assert longer.rows.shape == (2, 4, 6)
    assert longer.weight[:, :3, 4:].sum() == 0
