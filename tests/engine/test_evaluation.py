"""Losses and accuracies: of which examples, and of which model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.learn.linear import Logistic
from cafe.policies import mcu
from cafe.rounds import Ledger, Merge, Reports
from tests.support.small_tasks import drawn, points, taking


def test_loss_is_measured_on_the_test_examples() -> None:
    """After one step the model is at 1: 4 away from the test example, and 1 from its own."""
    policy = mcu(quorum=1, deadline=2.0)
    asked = cafe.simulate(taking(1.0), policy, drawn(2.0, test=points(5.0)), rounds=1)
    assert asked.loss == pytest.approx(4**2 / 2)
    own = cafe.simulate(taking(1.0), policy, drawn(2.0), rounds=1)
    assert own.loss == pytest.approx(1**2 / 2)


def test_accuracy_is_measured_on_the_test_examples() -> None:
    """The class is the sign; one test example of four has the wrong one."""
    data = Examples(np.array([[1.0], [-1.0]]), np.array([1, 0]))
    test = Examples(np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 1]))
    shards, learner = Shards.of([np.array([0, 1])]), Logistic(1, 2, l2=0.01)
    for asked, right in ((test, 0.75), (None, 1.0)):
        what = cafe.Task(data, shards, learner, test=asked)
        history = cafe.simulate(taking(1.0), mcu(quorum=1, deadline=2.0), what, rounds=20)
        assert history.accuracy == right


def test_losses_are_measured_on_the_first_batch() -> None:
    """Three steps, each half of the way to a point at 0 or at 8.

    An 8 adds 1 to the update if it comes first, 2 if second, 4 if last: odd means an 8 came first.
    """
    seen: list[Reports] = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(reports)
        return Merge(np.full(len(reports), 1 / len(reports)))

    base = mcu(quorum=1, deadline=2.0, steps=3)
    policy = replace(base, merge=merge, needs=frozenset({"losses", "updates"}))
    what = drawn(0.0, 8.0, clients=32, batch=1)
    cafe.simulate(taking(*[1.0] * 32), policy, what, rounds=1)
    (reports,) = seen
    assert reports.updates is not None
    assert reports.losses is not None
    updates = reports.updates.ravel()
    assert len(set(updates.tolist()) & set(range(8))) > 4
    np.testing.assert_allclose(reports.losses, np.where(updates % 2 == 1, 8**2 / 2, 0))


@pytest.mark.parametrize("needs", [(), ("updates",)])
def test_merge_may_mix_old_and_new_models(needs: Sequence[str]) -> None:
    """The mean of the old model and one half of the way further: a quarter of the way per round.

    Whether the policy needs the updates makes no difference.
    """

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(1, 0.5), keep=0.5, of="model")

    policy = replace(mcu(quorum=1, deadline=2.0), merge=merge, needs=frozenset(needs))
    history = cafe.simulate(taking(1.0), policy, drawn(1.0), rounds=3)
    assert history.model == pytest.approx([1 - 0.75**3])
