"""Federated averaging: rounds, cohorts and weights worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.policies import fedavg
from tests.support.federations import taking


@pytest.mark.parametrize(
    ("options", "closed", "succeeded"),
    [
        ({}, 4.0, True),
        ({"deadline": 9.0}, 4.0, True),
        ({"deadline": 3.5}, 3.5, True),
        ({"deadline": 3.5, "quorum": 4}, 3.5, False),
    ],
)
def test_when_a_round_of_fedavg_closes(
    options: dict[str, Any], closed: float, succeeded: bool
) -> None:
    policy = fedavg(fraction=1.0, **options)
    history = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0), policy, rounds=1)
    assert (history.virtual_time, history.updates) == (closed, succeeded)


@pytest.mark.parametrize(
    ("fraction", "invited"), [(0.01, 1), (0.24, 2), (0.26, 3), (0.94, 9), (1.0, 10)]
)
def test_a_fraction_is_rounded_to_the_nearest(fraction: float, invited: int) -> None:
    history = cafe.simulate(taking(*[1.0] * 10), fedavg(fraction=fraction), rounds=1)
    assert history.jobs == invited


@pytest.mark.parametrize(
    ("divisor", "weights"), [("reported", [1 / 3, 2 / 3, 0, 0]), ("all", [0.1, 0.2, 0, 0])]
)
def test_reports_are_weighted_by_size(divisor: Any, weights: list[float]) -> None:
    """Of clients with 1, 2, 3 and 4 examples, the first two report."""
    who = taking(1.0, 2.0, 3.0, 4.0, examples=np.array([1, 2, 3, 4]))
    history = cafe.simulate(who, fedavg(fraction=1.0, deadline=2.5, divisor=divisor), rounds=1)
    np.testing.assert_allclose(history.weight_by_client, weights)
