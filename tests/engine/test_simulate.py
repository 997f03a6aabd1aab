"""Simulations from beginning to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.policies import mcu
from tests.support.small_tasks import drawn, taking


def test_the_curve_counts_all_client_time() -> None:
    """Used or wasted: two clients report after 1 and 2; one works until the deadline in vain."""
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
@pytest.mark.slow
def test_run_is_evaluated_about_a_hundred_times(limit: dict[str, Any], scores: int) -> None:
    history = cafe.simulate(taking(1.0), mcu(quorum=1, deadline=2.0), drawn(1.0), **limit)
    assert history.curve is not None
    assert len(history.curve) == pytest.approx(scores, abs=1)
    assert np.diff(history.curve.round).max() <= history.rounds / scores + 1
    assert history.curve.round[-1] == history.rounds
