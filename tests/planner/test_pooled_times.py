"""The response times of all clients together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import pooled_mean
from cafe.planner.pooled_times import pooled_quantile


def test_pooled_mean_is_the_mean_over_clients() -> None:
    who = Federation.join(Federation(3, Exponential(1.0)), Federation(1, Exponential(0.1)))
    assert pooled_mean(who) == pytest.approx((3 * 1 + 10) / 4)


def test_pooled_quantile_counts_only_reports_that_arrive() -> None:
    rate, answers = np.array([1.0, 0.1]), np.array([0.9, 0.3])
    who = Federation(2, Exponential(rate), availability=answers)
    for share in (0.1, 0.5, 0.9):
        time = pooled_quantile(who, share)
        arrived = float(answers @ -np.expm1(-rate * time))
        assert arrived / answers.sum() == pytest.approx(share, rel=1e-6)
    equal = Federation(5, Exponential(2.0), availability=0.5)
    assert pooled_quantile(equal, 0.5) == pytest.approx(math.log(2) / 2)
    with pytest.raises(InputError, match="share must be below 1"):
        pooled_quantile(equal, 1.0)
