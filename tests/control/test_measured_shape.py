"""Distributions that are linear between knots, and curves measured from censored times."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.control.measured_shape import Interpolated, MeasuredCurve, measured_shape

UNIFORM = Interpolated(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2 / 3, 0.0]))
TRUE = cafe.Uniform(low=1.0, high=4.0)
TIMES = np.array([0.5, 1.0, 1.7, 2.0, 3.9, 4.0, 9.0])


def test_a_straight_line_is_the_uniform_distribution() -> None:
    for name in ("cdf", "sf", "mean_below"):
        assert getattr(UNIFORM, name)(TIMES) == pytest.approx(getattr(TRUE, name)(TIMES)), name
    assert float(UNIFORM.mean()) == pytest.approx(2.5)
    shares = np.array([0.1, 0.5, 0.99])
    assert UNIFORM.quantile(shares) == pytest.approx(TRUE.quantile(shares))
    inside = np.array([1.5, 3.0])
    assert UNIFORM.logpdf(inside) == pytest.approx(TRUE.logpdf(inside))
    assert UNIFORM.logpdf(5.0) == -np.inf
    assert UNIFORM.logsf(3.0) == pytest.approx(float(TRUE.logsf(3.0)))


def test_kinds_are_stretched() -> None:
    both = UNIFORM.scaled(np.array([1.0, 3.0]))
    assert both.kinds == 2
    assert both.cdf(6.0) == pytest.approx([1.0, float(TRUE.cdf(2.0))])
    assert both.take(np.array([1, 1, 0])).mean() == pytest.approx([7.5, 7.5, 2.5])
    assert both.mean_below(6.0) == pytest.approx([2.5, 3 * float(TRUE.mean_below(2.0))])
    drawn = both.sample(np.random.default_rng(1), 20_000)
    assert drawn.shape == (20_000, 2)
    error = drawn.std(axis=0) / 20_000**0.5
    assert np.all(np.abs(drawn.mean(axis=0) - [2.5, 7.5]) < 4 * error)


def test_kaplan_meier_by_hand() -> None:
    # 4 requests: a report at 1, one given up at 2, reports at 3 and 4.
    curve = MeasuredCurve.of(np.array([1.0, np.nan, 3.0, 4.0]), np.array([9.0, 2.0, 9.0, 9.0]))
    assert curve.times.tolist()[:2] == [1.0, 3.0]
    assert curve.share[:2] == pytest.approx([0.125, 1 - 0.5 * (0.75 + 0.375)])
    assert curve.reports == 3


def test_the_shape_is_measured_up_to_the_last_wait_and_then_follows_the_family() -> None:
    rng = np.random.default_rng(2)
    times = np.where(rng.random(4000) < 0.7, 1.0, 3.0) * rng.gamma(9.0, 1 / 9, 4000)
    seen = np.where(times < 2.0, times, np.nan)
    curve = MeasuredCurve.of(seen, np.full(4000, 2.0))
    family = cafe.LogNormal(mu=0.3, sigma=0.6)
    shape = measured_shape(curve, family, 1.0)
    for t in (0.5, 0.8, 1.0, 1.3, 1.9):
        assert float(shape.cdf(t)) == pytest.approx(float(np.mean(times <= t)), abs=0.02)
    reached = float(shape.sf(curve.times[-1]))
    for t in (3.0, 5.0):
        expected = reached * float(family.sf(t) / family.sf(curve.times[-1]))
        assert float(shape.sf(t)) == pytest.approx(expected, abs=0.02)
    assert float(shape.sf(1e9)) == 0.0
    half = measured_shape(curve, family, 0.9)
    assert float(half.cdf(1.0)) == pytest.approx(float(shape.cdf(1.0)) / 0.9, abs=0.01)
