"""Newton's method: quadratics in one step, and an error if there are too few steps."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.learn import newton
from cafe.learn.newton import Exact, FunctionPoint, minimise

HESSIAN = np.array([[3.0, 1.0], [1.0, 2.0]])
LOWEST = np.array([1.0, -2.0])


def quadratic(place: Exact) -> FunctionPoint:
    away = place - LOWEST
    return FunctionPoint(
        1.0 + float(away @ HESSIAN @ away) / 2, HESSIAN @ away, lambda v: HESSIAN @ v, lambda v: v
    )


def quartic(place: Exact) -> FunctionPoint:
    """sum of w^4 / 4 + w^2 / 2 - w, plus 2."""
    return FunctionPoint(
        float(np.sum(place**4 / 4 + place**2 / 2 - place)) + 2.0,
        place**3 + place - 1,
        lambda v: (3 * place**2 + 1) * v,
        lambda v: v / (3 * place**2 + 1),
    )


def test_the_minimum_of_a_quadratic() -> None:
    place, value = minimise(quadratic, np.zeros(2), convexity=1.0)
    np.testing.assert_allclose(place, LOWEST, atol=1e-6)
    assert value == pytest.approx(1.0)


def test_the_minimum_of_a_quartic() -> None:
    place, _ = minimise(quartic, np.array([0.0, 40.0]), convexity=1.0)
    np.testing.assert_allclose(place**3 + place, 1.0, atol=1e-5)


def test_too_few_steps_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "MOST_STEPS", 1)
    with pytest.raises(InputError, match="after 1 steps of Newton's method"):
        minimise(quartic, np.array([0.0, 40.0]), convexity=1.0)
