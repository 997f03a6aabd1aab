"""The quorum of a default plan: at most half the reports, hardly a cost, within the limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import plan


@pytest.mark.parametrize("clients", [1, 2, 3, 5, 10, 40, 500])
def test_largest_safe_quorum(clients: int) -> None:
    who = Federation(clients, Exponential(1.0))
    made = plan(who)
    half = made.expected.expected_reports / 2

    def success(rate: float, quorum: int) -> float:
        """Pr(n >= quorum), n binomial with p = 1 - exp(-rate T)."""
        return float(binom.sf(quorum - 1, clients, -np.expm1(-rate * made.deadline)))

    safe = [
        m
        for m in range(1, clients + 1)
        if m <= half and success(1.0, m) >= 0.999 and success(0.5, m) >= 0.99
    ]
    assert made.quorum == max(safe, default=1)


def test_limits_and_given_quorums_are_kept() -> None:
    who = Federation(100, Exponential(1.0))
    assert plan(who, quorum=3).quorum == 3
    assert plan(who, at_most={"quorum": 10}).quorum == 10
    assert plan(who, at_least={"quorum": 60}).quorum == 60
    assert plan(who, waste_price=1, broadcast_price=10).quorum == 1
