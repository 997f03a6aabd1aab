"""The range and the grid of the deadlines that a search considers."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.federation import Federation
from cafe.latency import Constant, Empirical, ShiftedExponential
from cafe.planner.deadline_grid import deadline_grid, deadline_range


def test_deadline_range_starts_at_a_jump() -> None:
    assert deadline_range(Federation(5, Constant(2.0))) == pytest.approx((2.0, 2.0))
    low, high = deadline_range(Federation(5, Empirical([1.0, 3.0])))
    assert (low, high) == pytest.approx((1.0, 3.0))
    low, _ = deadline_range(Federation(5, ShiftedExponential(4.0, 1.0)))
    assert low == pytest.approx(4.0, rel=1e-3)


def test_grid_contains_both_ends_and_every_jump() -> None:
    who = Federation(5, Empirical([1.0, 2.5, 3.0]))
    grid = deadline_grid(who, 0.5, 4.0)
    assert grid[0] == 0.5
    assert grid[-1] == 4.0
    assert {1.0, 2.5, 3.0} <= set(grid.tolist())
    assert np.all(np.diff(grid) > 0)
