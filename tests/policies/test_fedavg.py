"""Federated averaging: rounds, cohorts and weights worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import fedavg
from cafe.reference import Reference
from tests.support.federations import taking
from tests.support.vectors import models, points


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


@pytest.mark.parametrize("kind", [Run, Reference])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # One step goes half the way: from 0 to 2 and 4. Then (2 + 3 * 4) / 4 or / 8.
        ({}, [3.5, 5.25]),
        ({"divisor": "all"}, [1.75, 3.0625]),
        # Two steps go three quarters of the way: (3 + 3 * 6) / 4.
        ({"epochs": 2}, [5.25]),
        ({"steps": 2}, [5.25]),
    ],
)
def test_models_of_two_rounds(kind: Any, options: dict[str, Any], expected: list[float]) -> None:
    """Clients with 1, 3 and 4 examples at 4, 8 and 100; the third is late. Rate 1/2, from 0.

    Second round: from 3.5 to 3.75 and 5.75, and (3.75 + 3 * 5.75) / 4 = 5.25. With "all", from 1.75
    to 2.875 and 4.875, and (2.875 + 3 * 4.875 + 4 * 1.75) / 8 = 3.0625.
    """
    policy = fedavg(fraction=1.0, deadline=3.0, **options)
    run = kind(taking(1.0, 2.0, 9.0), policy, points(4.0, 8.0, 100.0, copies=[1, 3, 4]))
    assert models(run, len(expected)) == [[model] for model in expected]
