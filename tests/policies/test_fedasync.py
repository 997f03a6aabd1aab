"""FedAsync: the mixing of models worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data import Examples, Shards
from cafe.errors import InfeasibleError, InputError
from cafe.learn.quadratic import Quadratic
from cafe.policies import fedasync
from tests.support.federations import taking


def two_points() -> cafe.Task:
    """Client 0 is at 1 and client 1 at -1; a step goes half of the way there. The model is 0."""
    points = Examples(np.array([[1.0], [-1.0]]), np.zeros(2))
    return cafe.Task(points, Shards.of([np.array([0]), np.array([1])]), Quadratic(1), rate=0.5)


R2, R3 = np.sqrt(2), np.sqrt(3)


@pytest.mark.parametrize(
    ("options", "third", "fourth"),
    [
        # a = 0.6 for all: 0.4 * 0.51 - 0.6 * 0.5, then 0.4 * (-0.096) + 0.6 * 0.755
        ({"staleness": "constant"}, -0.096, 0.4146),
        # up to a staleness of 4 "hinge" is 1
        ({"staleness": "hinge"}, -0.096, 0.4146),
        # a = 0.6 / (0.5 * (2 - 1) + 1) = 0.4, then 0.6: 0.6 * 0.51 - 0.4 * 0.5, then 0.4 * 0.106
        # + 0.6 * 0.755
        ({"staleness": "hinge", "slope": 0.5, "lag": 1.0}, 0.106, 0.4954),
        # a = 0.6 / sqrt(3) = 0.346410, then 0.6 / sqrt(2) = 0.424264
        ({}, 0.1601257, 0.4125095),
        # a = 0.6 / 3 = 0.2, then 0.6 / 2 = 0.3: 0.8 * 0.51 - 0.1, then 0.7 * 0.308 + 0.3 * 0.755
        ({"power": 1.0}, 0.308, 0.4421),
    ],
)
def test_models_are_mixed(options: dict[str, Any], third: float, fourth: float) -> None:
    """Client 0 reports at 1, 2 and 3, and client 1, which is two updates old then, at 2.5.

    The first model is 0.5, so the mix is 0.3. The second starts there and is 0.65; the mix is
    0.4 * 0.3 + 0.6 * 0.65 = 0.51. The third, from client 1, is -0.5. The fourth began at 0.51
    before it, is one update old, and is 0.755.
    """
    policy = fedasync(concurrency=2, steps=1, **options)
    models = []
    for rounds in (1, 2, 3, 4):
        history = cafe.simulate(taking(1.0, 2.5), policy, two_points(), rounds=rounds)
        assert history.model is not None
        models.append(float(history.model[0]))
    assert history.by_round["closed"].tolist() == [1.0, 2.0, 2.5, 3.0]
    assert models == pytest.approx([0.3, 0.51, third, fourth], abs=1e-6)


def test_weights_do_not_compound() -> None:
    """Each weight depends on its own staleness: 0, 0, 2, 1, then 0 again."""
    policy, weights = fedasync(concurrency=2), [np.zeros(2)]
    for rounds in (1, 2, 3, 4, 5):
        weights.append(cafe.simulate(taking(1.0, 2.5), policy, rounds=rounds).weight_by_client)
    coefficients = np.diff(weights, axis=0).sum(axis=1)
    np.testing.assert_allclose(coefficients, [0.6, 0.6, 0.6 / R3, 0.6 / R2, 0.6])


@pytest.mark.parametrize(("prox", "model"), [(0.0, 0.75), (1.0, 0.5), (2.0, 0.25)])
def test_proximal_term_keeps_clients_near_their_start(prox: float, model: float) -> None:
    """The first step leads to 0.5; there the gradient is -0.5 + 0.5 prox, and the rate is 0.5."""
    policy = fedasync(concurrency=1, mixing=1.0, steps=2, prox=prox)
    points = Examples(np.ones((1, 1)), np.zeros(1))
    what = cafe.Task(points, Shards.of([np.array([0])]), Quadratic(1), rate=0.5)
    history = cafe.simulate(taking(1.0), policy, what, rounds=1)
    assert history.model == pytest.approx([model])


def test_concurrency_is_bounded() -> None:
    policy = fedasync(concurrency=3)
    history = cafe.simulate(cafe.Federation(50, cafe.Exponential(1.0)), policy, rounds=100)
    assert history.by_round["invited"].tolist() == [3] + [1] * 99
    assert history.by_round["reports"].tolist() == [1] * 100
    assert (history.waste, history.open_jobs) == (0.0, 2)


def test_deadline_frees_lost_clients() -> None:
    who = cafe.Federation(8, cafe.Exponential(1.0))
    with pytest.raises(InfeasibleError, match="would never end"):
        cafe.simulate(who, fedasync(concurrency=2), rounds=200, crash=0.8)
    history = cafe.simulate(who, fedasync(concurrency=2, deadline=9.0), rounds=200, crash=0.8)
    assert (history.by_round["closed"] - history.by_round["opened"]).max() == pytest.approx(9.0)
    assert 20 < history.updates < 200


def test_mixing_above_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"mixing must be at most 1, .* Got 1\.5"):
        fedasync(concurrency=2, mixing=1.5)
