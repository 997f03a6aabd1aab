"""What a run shows: scores, losses, work and the fastest client, in numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.errors import InfeasibleError
from cafe.learn.linear import Logistic
from cafe.learn.quadratic import Quadratic
from cafe.policies import mcu
from cafe.rounds import Invitation, Ledger, Merge, Reports


def taking(*times: float) -> cafe.Federation:
    return cafe.Federation(len(times), cafe.Constant(np.array(times)))


def points(*at: float) -> Examples:
    return Examples(np.array(at)[:, None], np.zeros(len(at)))


def drawn(*at: float, clients: int = 1, **more: Any) -> cafe.Task:
    """A model that begins at 0 and is drawn to the mean of the points; all clients hold all."""
    given: dict[str, Any] = {"rate": 0.5} | more
    shards = Shards.of([np.arange(len(at))] * clients)
    return cafe.Task(points(*at), shards, Quadratic(1), **given)


def test_the_loss_is_of_the_test_examples() -> None:
    """After one step the model is at 1: 4 away from the test example, and 1 from its own."""
    policy = mcu(quorum=1, deadline=2.0)
    asked = cafe.simulate(taking(1.0), policy, drawn(2.0, test=points(5.0)), rounds=1)
    assert asked.loss == pytest.approx(4**2 / 2)
    own = cafe.simulate(taking(1.0), policy, drawn(2.0), rounds=1)
    assert own.loss == pytest.approx(1**2 / 2)


def test_accuracy_is_of_the_test_examples() -> None:
    """The class is the sign; one test example of four has the wrong one."""
    data = Examples(np.array([[1.0], [-1.0]]), np.array([1, 0]))
    test = Examples(np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 1]))
    shards, learner = Shards.of([np.array([0, 1])]), Logistic(1, 2, l2=0.01)
    for asked, right in ((test, 0.75), (None, 1.0)):
        what = cafe.Task(data, shards, learner, test=asked)
        history = cafe.simulate(taking(1.0), mcu(quorum=1, deadline=2.0), what, rounds=20)
        assert history.accuracy == right


def test_losses_are_of_the_first_batch() -> None:
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
def test_models_may_be_mixed(needs: Sequence[str]) -> None:
    """Half the old model and half of one that went half the way: a quarter of the way a round.

    Whether the policy looks at the updates makes no difference.
    """

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(1, 0.5), keep=0.5, of="model")

    policy = replace(mcu(quorum=1, deadline=2.0), merge=merge, needs=frozenset(needs))
    history = cafe.simulate(taking(1.0), policy, drawn(1.0), rounds=3)
    assert history.model == pytest.approx([1 - 0.75**3])


def test_the_fastest_client_is_the_quickest_not_the_first_to_report() -> None:
    """Client 0, begun at 0, would report at 2.5; client 1 at 3, but it was begun at 1."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Invitation(np.array([ledger.round]))

    policy = replace(mcu(quorum=1, deadline=1.0, late="keep"), invite=invite)
    with pytest.raises(InfeasibleError, match=r"fastest report in them took 2 \(client 1\)"):
        cafe.simulate(taking(2.5, 2.0), policy, rounds=9, patience=2)


def test_the_curve_counts_all_client_time() -> None:
    """Used or not: two clients report after 1 and 2, and one works in vain up to the deadline."""
    policy = mcu(quorum=1, deadline=2.5)
    what = drawn(1.0, clients=3)
    history = cafe.simulate(taking(1.0, 2.0, 3.0), policy, what, rounds=6, evaluate_every=2)
    assert history.curve is not None
    np.testing.assert_allclose(history.curve.work, [11.0, 22.0, 33.0])
    np.testing.assert_allclose(history.curve.time, [5.0, 10.0, 15.0])


@pytest.mark.parametrize(
    ("limit", "scores"),
    [
        ({"rounds": 1000}, 100),
        ({"updates": 500}, 100),
        ({"time": 1000.0}, 100),
        ({"rounds": 30}, 30),
    ],
)
def test_a_run_is_scored_about_a_hundred_times(limit: dict[str, Any], scores: int) -> None:
    history = cafe.simulate(taking(1.0), mcu(quorum=1, deadline=2.0), drawn(1.0), **limit)
    assert history.curve is not None
    assert len(history.curve) == pytest.approx(scores, abs=1)
    assert np.diff(history.curve.round).max() <= history.rounds / scores + 1
    assert history.curve.round[-1] == history.rounds
