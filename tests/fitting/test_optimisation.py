"""Maximisation and derivatives of functions whose maximum is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cafe.fitting.optimisation import (
    REACH,
    gradient_and_hessian,
    maximise,
    minus_inf_on_error,
)
from cafe.latency.base import Floats

CENTRE = np.array([0.5, -1.0])
CURVATURE = np.array([[2.0, 0.5], [0.5, 1.0]])


def hill(z: Floats) -> float:
    return float(-0.5 * (z - CENTRE) @ CURVATURE @ (z - CENTRE))


def hill_with_gradient(z: Floats) -> tuple[float, Floats]:
    return hill(z), -CURVATURE @ (z - CENTRE)


@pytest.mark.parametrize("slope", [None, hill_with_gradient])
def test_the_maximum_is_found_with_and_without_a_gradient(slope: object) -> None:
    found = maximise(hill, 2, 1.0, hill_with_gradient if slope else None)
    np.testing.assert_allclose(found, CENTRE, atol=1e-4)


def test_unbounded_maximum_stops_at_the_limit() -> None:
    found = maximise(lambda z: float(z[0]), 1, 1.0)
    assert 0.9 * REACH < found[0] <= REACH


def test_derivatives_of_a_quadratic_function() -> None:
    at = np.array([0.2, 0.3])
    gradient, hessian = gradient_and_hessian(hill, at)
    np.testing.assert_allclose(gradient, -CURVATURE @ (at - CENTRE), atol=1e-8)
    np.testing.assert_allclose(hessian, -CURVATURE, atol=1e-6)


def test_errors_and_nan_become_minus_infinity() -> None:
    safe = minus_inf_on_error(lambda z: math.exp(z[0]))
    assert safe(np.array([1.0])) == math.e
    assert safe(np.array([1e6])) == -math.inf
    assert minus_inf_on_error(lambda z: math.nan)(np.zeros(1)) == -math.inf
