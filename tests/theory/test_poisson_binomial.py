from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.latency.base import Floats
from cafe.theory import poisson_binomial
from cafe.theory.poisson_binomial import Tilted, Trials

if TYPE_CHECKING:
    from tests.support.theory_oracles import Counter

steady = settings(derandomize=True, deadline=None, max_examples=60, database=None)


def trials(report: Floats, number: Floats | None = None) -> Trials:
    return Trials(report, 1.0 - report, np.ones_like(report) if number is None else number)


def some(clients: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).uniform(0.02, 0.9, clients)


@pytest.mark.parametrize("theta", [-0.5, -1e-3, 0.0, 1e-6, 0.5])
@pytest.mark.parametrize(("first", "last"), [(0, 30), (4, 9), (11, 11), (0, 0), (12, 40), (9, 4)])
def test_any_tilt_gives_the_same_sum(counted: Counter, theta: float, first: int, last: int) -> None:
    """A tilt changes only the rounding error; a small tilt loses few digits in any range."""
    report = some(30)
    masses = counted(report, 1 - report, np.ones(30), 1).masses
    n = np.arange(31.0)
    inside = (n >= first) & (n <= last)
    sums = Tilted(trials(report), theta)
    assert sums.mass(first, last) == pytest.approx((masses * inside).sum(), rel=1e-9, abs=1e-12)
    squares = sums.mass(first, last, lambda k: k**2)
    assert squares == pytest.approx((n**2 * masses * inside).sum(), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("theta", [-0.5, 0.0, 0.5])
def test_mass_without_one_client_of_each_kind(counted: Counter, theta: float) -> None:
    report, number = some(5), np.array([1.0, 4.0, 2.0, 7.0, 1.0])
    found = Tilted(trials(report, number), theta).mass_without(3, 8, lambda k: 1 / (1 + k))
    for k in range(5):
        fewer = number.copy()
        fewer[k] -= 1
        left = fewer > 0
        masses = counted(report[left], 1 - report[left], fewer[left], 1).masses
        n = np.arange(masses.size)
        wanted = (masses / (1 + n))[3:9].sum()
        assert found[k] == pytest.approx(wanted, rel=1e-11)


def test_sum_without_one_trial_is_below_the_number_of_trials() -> None:
    """With one trial left out, the sum cannot reach the number of trials."""
    assert np.all(Tilted(trials(some(6)), 0.5).mass_without(6, 6) == 0.0)


@pytest.mark.parametrize("theta", [-2.0, 0.0, 0.8])
def test_the_tilted_distribution(counted: Counter, theta: float) -> None:
    report = some(60)
    masses = counted(report, 1 - report, np.ones(60), 1).masses
    wanted = masses * np.exp(theta * np.arange(61.0))
    values, found = Tilted(trials(report), theta).distribution
    whole = np.zeros(int(values[-1]) + 1)
    whole[values.astype(int)] = found
    np.testing.assert_allclose(whole[:61], wanted / wanted.sum(), atol=1e-15)
    assert Tilted(trials(report), theta).log_total == pytest.approx(np.log(wanted.sum()), rel=1e-12)


@pytest.mark.parametrize("clients", [3, 80, 4000])
def test_the_characteristic_function(clients: int) -> None:
    """The power series against the plain product over clients."""
    rng = np.random.default_rng(2)
    report = np.concatenate([rng.random(clients) / 50, rng.random(clients), 1 - rng.random(40) / 9])
    sums = Tilted(trials(report), 0.0)
    turns = np.exp(1j * sums.angles)
    plain = np.array([np.exp(np.log(1 - report + report * z).sum()) for z in turns])
    np.testing.assert_allclose(sums.characteristic, plain, atol=1e-13)


def test_number_of_angles_is_bounded() -> None:
    """The angles left out are negligible; the number of angles kept does not grow with N."""
    for clients in (100, 10_000, 1_000_000):
        sums = Tilted(Trials(np.array([0.3]), np.array([0.7]), np.array([float(clients)])), 0.0)
        assert sums.angles.size < 100
        assert abs(sums.characteristic[-1]) < 1e-3


@steady
@given(
    st.lists(st.floats(-40, 40), min_size=1, max_size=8),
    st.lists(st.integers(1, 50), min_size=8, max_size=8),
    st.floats(0, 1),
)
def test_the_saddle_is_near_its_target(
    logits: list[float], number: list[int], place: float
) -> None:
    odds = np.exp(np.array(logits))
    many = np.array(number[: odds.size], dtype=float)
    kinds = Trials(odds / (1 + odds), 1 / (1 + odds), many)
    target = 0.5 + place * (kinds.total - 1)
    theta = kinds.saddle(target)
    assert np.isfinite(theta)
    sums = Tilted(kinds, theta)
    mean = float(many @ sums.chance)
    assert abs(mean - target) <= 0.06 * max(sums.variance**0.5, 1.0)


@pytest.mark.parametrize("variance", [4.0, 29.0, 31.0, 150.0])
@pytest.mark.parametrize("theta", [-0.2, 0.0, 0.2])
def test_interpolation_agrees_with_exact_kinds(
    monkeypatch: pytest.MonkeyPatch, variance: float, theta: float
) -> None:
    """From variance 30 up one table covers all kinds; below there are three zones."""
    spread = np.linspace(0.01, 0.99, int(5 * variance))
    rest = np.linspace(0.0, 1.0, 601)[1:] * (variance - spread @ (1 - spread)) / 600
    report = np.concatenate([spread, rest, 1 - rest])
    kinds = trials(report)
    by_table = Tilted(kinds, theta)
    assert Tilted(kinds, 0.0).variance == pytest.approx(variance, rel=0.02)
    middle = round(float(by_table.chance.sum()))
    reach = (middle, report.size) if theta > 0 else (0, middle)
    table = by_table.mass_without(*reach)
    monkeypatch.setattr(poisson_binomial, "DIRECT", report.size)
    np.testing.assert_allclose(table, Tilted(kinds, theta).mass_without(*reach), rtol=1e-12)


@pytest.mark.parametrize("mirrored", [False, True])
def test_interpolation_at_the_edge_of_a_side_zone(
    monkeypatch: pytest.MonkeyPatch, mirrored: bool
) -> None:
    """Few reports, or few misses: every angle counts, and the singularities are nearest."""
    rare = np.concatenate([np.linspace(1e-6, 1e-3, 400), [0.02, 0.06, 0.1, 0.15, 0.2, 0.25]])
    kinds = Trials(1.0 - rare, rare, np.ones(406)) if mirrored else trials(rare)
    reach = (0, 404) if mirrored else (1, 405)
    table = Tilted(kinds, 0.0).mass_without(*reach)
    monkeypatch.setattr(poisson_binomial, "DIRECT", 406)
    np.testing.assert_allclose(table, Tilted(kinds, 0.0).mass_without(*reach), rtol=1e-13)


def test_interpolation_of_equal_kinds() -> None:
    """A table over an interval of width 0 is one value."""
    report = np.full(1000, 0.3)
    found = Tilted(trials(report), 0.0).mass_without(0, 300)
    assert np.all(found == found[0])
    assert 0.4 < found[0] < 0.6
