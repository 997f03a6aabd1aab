from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.theory import (
    expect,
    mean_share_as_printed,
    merit_as_printed,
    objective_as_printed,
    others_suffice_as_printed,
)
from cafe.theory.as_printed import binomial, report_probability

steady = settings(derandomize=True, deadline=None, max_examples=100, database=None)
grid = given(st.integers(1, 120), st.floats(0.1, 10.0), st.floats(0.01, 4.0), st.floats(0, 1))


def test_the_binomial_distribution() -> None:
    wanted = [comb(9, n) * 0.3**n * 0.7 ** (9 - n) for n in range(10)]
    np.testing.assert_allclose(binomial(9, 0.3), wanted, rtol=1e-12)
    np.testing.assert_array_equal(binomial(3, 1.0), [0, 0, 0, 1])
    np.testing.assert_array_equal(binomial(3, 0.0), [1, 0, 0, 0])
    assert binomial(100_000, 0.37).sum() == pytest.approx(1.0, rel=1e-8)


def test_the_report_probability() -> None:
    assert report_probability(2.0, 0.25) == pytest.approx(1 - np.exp(-0.5), rel=1e-15)
    assert report_probability(1.0, 1e-20) == 1e-20


@steady
@grid
def test_the_mean_share_is_success_over_clients(
    clients: int, rate: float, report: float, place: float
) -> None:
    """The paper's sum for S~ equals (1 - q) / N, and so does the result of the general code."""
    quorum = 1 + round(place * (clients - 1))
    exact = expect(Federation(clients, Exponential(rate)), quorum=quorum, deadline=report / rate)
    if exact.success_probability > 1e-250:
        printed = mean_share_as_printed(clients, rate, quorum, report / rate)
        assert printed == pytest.approx(exact.success_probability / clients, rel=1e-9)
        assert printed == pytest.approx(exact.mean_share, rel=1e-9)
        assert printed == pytest.approx(exact.share_by_client[0], rel=1e-9)


@steady
@grid
def test_the_merit(clients: int, rate: float, report: float, place: float) -> None:
    quorum = 1 + round(place * (clients - 1))
    exact = expect(Federation(clients, Exponential(rate)), quorum=quorum, deadline=report / rate)
    suffice = float(exact.setting.turnout.others_suffice[0])
    if suffice > 1e-250:
        args = (clients, rate, quorum, report / rate)
        assert others_suffice_as_printed(*args) == pytest.approx(suffice, rel=1e-9)
        assert merit_as_printed(*args) == pytest.approx(exact.merit, rel=1e-9)


def test_the_merit_peaks_at_33() -> None:
    """Fig. 6: N = 100, T = 0.5."""
    merits = [merit_as_printed(100, 1.0, quorum, 0.5) for quorum in range(1, 101)]
    assert int(np.argmax(merits)) + 1 == 33
    assert merits[32] == pytest.approx(30.98360, abs=5e-6)
    federation = Federation(100, Exponential(1.0))
    assert expect(federation, quorum=33, deadline=0.5).merit == pytest.approx(30.98360, abs=5e-6)


@steady
@given(
    st.integers(1, 120),
    st.floats(0.1, 10.0),
    st.floats(0.01, 12.0),
    st.floats(0.0, 50.0),
    st.floats(0.0, 200.0),
)
def test_the_objective(
    clients: int, rate: float, x: float, waste_price: float, broadcast_price: float
) -> None:
    exact = expect(Federation(clients, Exponential(rate)), quorum=1, deadline=x / rate)
    sums = waste_price * exact.waste + broadcast_price * exact.broadcasts + exact.age
    printed = objective_as_printed(clients, rate, x / rate, waste_price, broadcast_price)
    assert printed == pytest.approx(sums, rel=1e-9)


def test_objective_has_two_local_minima() -> None:
    """Fig. 3: N = 50, prices 20 and 100; the minimum at the longer deadline is the better one."""
    x = np.geomspace(0.005, 50, 4000)
    values = np.array([objective_as_printed(50, 1.0, t, 20.0, 100.0) for t in x])
    inner = np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])) + 1
    assert x[inner] == pytest.approx([0.0433, 8.521], rel=5e-3)
    assert values[inner] == pytest.approx([160.85, 114.48], abs=0.01)
