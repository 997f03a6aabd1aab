from __future__ import annotations

import numpy as np
import pytest

from cafe.latency.base import Floats
from cafe.theory.panels import Panels, integral, integral_against

NO_BREAKS = np.empty(0)


@pytest.mark.parametrize("width", [1.0, 0.1, 0.01])
def test_a_step_is_found(width: float) -> None:
    """A smooth step at 3.3, of any width: the panels around it are halved."""
    found = integral(
        lambda t: np.array([1 / (1 + np.exp((t - 3.3) / width))]), 0.0, 10.0, NO_BREAKS
    )
    wanted = width * (np.logaddexp(0, 3.3 / width) - np.logaddexp(0, -6.7 / width))
    assert found[0] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("width", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("many", [1, 100])
def test_steps_against_each_other(width: float, many: int) -> None:
    """The integral of F dF is F^2 / 2; many smooth distributions beside it change nothing."""

    def steps(t: float) -> Floats:
        first = np.array([1 / (1 + np.exp(-(t - 3.3) / width))])
        return np.concatenate([first, np.full(many - 1, t / 10)])

    def peaks(t: float) -> Floats:
        first = steps(t)[:1]
        return np.concatenate([first * (1 - first) / width, np.full(many - 1, 0.1)])

    found = integral_against(steps, steps, peaks, 0.0, 10.0, NO_BREAKS)
    wanted = (steps(10.0)[0] ** 2 - steps(0.0)[0] ** 2) / 2
    rough = many > 1 and width < 1
    assert found[0] == pytest.approx(wanted, rel=0.1 if rough else 1e-6)
    assert found[1:] == pytest.approx(0.5, rel=1e-9)


def test_panels_end_at_jumps() -> None:
    jumps = np.array([0.3, 7.0])
    found = integral(lambda t: np.array([float(t > 0.3)]), 0.0, 1.0, jumps)
    assert found[0] == pytest.approx(0.7, rel=1e-14)
    many = np.linspace(0.0, 1.0, 400)
    found = integral(lambda t: np.array([t, float(t > 0.3)]), 0.0, 1.0, many)
    assert found == pytest.approx([0.5, 0.7], rel=1e-3)


def test_an_empty_range() -> None:
    found = integral(lambda t: np.array([1.0, t]), 2.0, 2.0, NO_BREAKS)
    assert found.tolist() == [0.0, 0.0]


def test_integrals_to_several_times_share_their_parts() -> None:
    asked = []

    def integrate(low: float, high: float) -> Floats:
        asked.append((low, high))
        return integral(lambda t: np.array([t]), low, high, NO_BREAKS)

    panels = Panels(integrate, 0.0)
    for time in (4.0, 6.0, 5.0, 6.0):
        assert panels.until(time) == pytest.approx([time**2 / 2])
    assert asked == [(0.0, 4.0), (4.0, 6.0), (4.0, 5.0)]
