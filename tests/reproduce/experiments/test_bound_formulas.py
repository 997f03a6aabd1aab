"""The recursion beside its closed form."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe import theory
from cafe.reproduce.experiments import book_counts, bound_formulas

pytestmark = pytest.mark.slow


def test_recursion_is_below_its_closed_form_and_equal_without_a_distance() -> None:
    variance = cafe.expect(book_counts.equal_clients(), quorum=1, deadline=0.5).variance
    rounds = [1, 10, 100, 1000]
    far = theory.Problem(smoothness=30, convexity=1, noise=8, heterogeneity=1, distance=0.5)
    steps, closed = (
        bound_formulas.recursion(far, variance, rounds),
        theory.bound(far, variance, rounds),
    )
    assert np.all(steps <= closed)
    # The initial distance no longer matters in the recursion, but still does in the closed form.
    assert steps[-1] < 0.3 * closed[-1]
    near = theory.Problem(smoothness=1, convexity=1, noise=8, heterogeneity=1)
    ratio = bound_formulas.recursion(near, variance, rounds) / theory.bound(near, variance, rounds)
    assert ratio[-1] == pytest.approx(1, rel=0.02)
