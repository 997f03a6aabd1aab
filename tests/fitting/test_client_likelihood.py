"""The likelihood of each client's times agrees with sums over single observations."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.observations import Observations
from cafe.latency import Exponential, Gamma, Latency, LogNormal, Uniform, Weibull

POOLS: dict[str, Latency] = {
    "exponential": Exponential(0.8),
    "weibull": Weibull(1.7, 1.2),
    "lognormal": LogNormal(0.1, 0.4),
    "gamma": Gamma(3.0, 0.4),
}
NAN = float("nan")
# Client 0 reports and misses, client 1 only reports, client 2 only misses.
SECONDS = np.array([0.5, 1.1, NAN, 0.9, 1.4, 0.2, NAN, NAN])
DEADLINE = np.array([2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 1.5, 2.5])
CLIENT = np.array([0, 0, 0, 1, 1, 1, 2, 2])
U, V = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -0.5])


def sums() -> ClientSums:
    seen = Observations(SECONDS, DEADLINE, CLIENT)
    return ClientSums.of(CensoredSample.of(seen, by_client=True), 3)


@pytest.mark.parametrize("family", POOLS)
def test_value_is_the_sum_over_observations(family: str) -> None:
    pool = POOLS[family]
    expected = np.zeros(3)
    for seconds, deadline, k in zip(SECONDS, DEADLINE, CLIENT, strict=True):
        share = 1 / (1 + np.exp(-V[k]))
        own = pool.scaled(np.exp(U[k]))
        if np.isnan(seconds):
            expected[k] += np.log(1 - share * own.cdf(deadline))
        else:
            expected[k] += np.log(share) + own.logpdf(seconds)
    found = sums().log_likelihood(pool)(U, V)
    np.testing.assert_allclose(found.value, expected, rtol=1e-10)


@pytest.mark.parametrize("family", POOLS)
def test_derivatives_agree_with_differences(family: str) -> None:
    at, h = sums().log_likelihood(POOLS[family]), 1e-4
    here = at(U, V)
    up_u, down_u, up_v, down_v = at(U + h, V), at(U - h, V), at(U, V + h), at(U, V - h)
    np.testing.assert_allclose(here.u, (up_u.value - down_u.value) / (2 * h), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(here.v, (up_v.value - down_v.value) / (2 * h), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(here.uu, (up_u.u - down_u.u) / (2 * h), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(here.uv, (up_v.u - down_v.u) / (2 * h), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(here.vv, (up_v.v - down_v.v) / (2 * h), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("family", POOLS)
def test_certain_availability_is_the_censored_likelihood(family: str) -> None:
    pool = POOLS[family]
    with np.errstate(invalid="ignore"):
        found = sums().log_likelihood(pool)(np.zeros(3), np.full(3, np.inf))
    came = ~np.isnan(SECONDS)
    single = np.where(came, pool.logpdf(np.where(came, SECONDS, 1.0)), pool.logsf(DEADLINE))
    np.testing.assert_allclose(found.value, np.bincount(CLIENT, single), rtol=1e-10)


@pytest.mark.parametrize("level", [-0.7, 2.0, np.inf])
@pytest.mark.parametrize("family", POOLS)
def test_equal_availability_gives_the_same_values(family: str, level: float) -> None:
    own = sums()
    with np.errstate(invalid="ignore"):
        found = own.log_likelihood_at(POOLS[family], level)(U)
        general = own.log_likelihood(POOLS[family])(U, np.full(3, level))
    np.testing.assert_array_equal(found.value, general.value)
    np.testing.assert_array_equal(found.u, general.u)
    np.testing.assert_array_equal(found.uu, general.uu)
    assert not np.any([found.v, found.uv, found.vv])


def test_other_families_are_refused() -> None:
    with pytest.raises(TypeError, match="Uniform is not one of the families"):
        sums().log_likelihood(Uniform(0.0, 1.0))
