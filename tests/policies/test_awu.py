"""Age-weighted update: weights worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.policies import awu
from tests.support.federations import taking


@pytest.mark.parametrize(
    ("options", "before", "last"),
    [
        ({}, 1.0, (64 / 164, 100 / 164)),  # the paper's Q: min(age, 10)^2
        ({"unit": "rounds"}, 1.0, (4 / 20, 16 / 20)),
        ({"weight": "age"}, 1.0, (8 / 20, 12 / 20)),
        ({"weight": "age", "unit": "rounds"}, 1.0, (2 / 6, 4 / 6)),
        ({"weight": np.square}, 1.0, (64 / 208, 144 / 208)),
        ({"weight": np.square, "unit": "rounds"}, 1.0, (4 / 20, 16 / 20)),
        ({"weight": "linear"}, 1.0, (1 / 4, 3 / 4)),
        ({"weight": "unbiased"}, 1 / 2, (1 / 2, 3 / 2)),
    ],
)
def test_reports_are_weighted_by_age(
    options: dict[str, Any], before: float, last: tuple[float, float]
) -> None:
    """Client 0 reports alone in two rounds; client 1, started at 0, also reports in the third.

    That closes at 12. Client 0 was last merged in the round before, from a job begun at 4: its age
    is 8, or 2 rounds. Client 1 was never merged: 12, or 4 rounds, with one more for its first.
    """
    policy = awu(deadline=4.0, late="keep", **options)
    first, second, third = (
        cafe.simulate(taking(2.0, 10.0), policy, rounds=rounds).weight_by_client
        for rounds in (1, 2, 3)
    )
    np.testing.assert_allclose(first, [before, 0])
    np.testing.assert_allclose(second - first, [before, 0])
    np.testing.assert_allclose(third - second, last)
