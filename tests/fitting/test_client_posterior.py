"""Posteriors of scale and availability, compared with brute-force integration."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.client_posterior import Pool, client_posterior, draw_clients
from cafe.fitting.observations import Observations
from cafe.latency import Exponential, Gamma, Latency, LogNormal, Weibull
from cafe.latency.base import Floats

CLIENTS, ROUNDS, DEADLINE = 5, 15, 1.5
POOLS: dict[str, Latency] = {
    "exponential": Exponential(1.0),
    "weibull": Weibull(2.0, 1.2),
    "lognormal": LogNormal(0.0, 0.4),
    "gamma": Gamma(4.0, 0.3),
}


def sums(copies: int = 1) -> ClientSums:
    """Five clients: the first never reports, the second always, the others sometimes.

    There may be several copies of the five.
    """
    rng = np.random.default_rng(0)
    times = LogNormal(0.0, 0.4).sample(rng, (ROUNDS, CLIENTS))
    times[rng.random((ROUNDS, CLIENTS)) < 0.2] = np.inf
    times[:, 0] = np.inf
    times[:, 1] = np.minimum(times[:, 1], 1.1)
    times, clients = np.tile(times, copies), copies * CLIENTS
    seen = Observations(
        np.where(times <= DEADLINE, times, np.nan).ravel(),
        DEADLINE,
        np.tile(np.arange(clients), ROUNDS),
    )
    return ClientSums.of(CensoredSample.of(seen, by_client=True), clients)


def brute_force(pool: Pool) -> tuple[Floats, Floats, Floats]:
    """Each client's log marginal likelihood, and the means of a and of u, on a fine grid."""
    u = pool.spread * np.linspace(-6, 6, 121)
    v = pool.level + pool.unevenness * np.linspace(-6, 6, 161)
    # One copy of the clients for each v of the grid.
    at, each_v = sums(v.size).log_likelihood(pool.latency), np.repeat(v, CLIENTS)
    off = (v - pool.level) / pool.unevenness
    heights = np.zeros((u.size, v.size, CLIENTS))
    with np.errstate(all="ignore"):
        for i, one in enumerate(u):
            own = at(np.full(each_v.size, one), each_v).value.reshape(v.size, CLIENTS)
            heights[i] = own - 0.5 * (one / pool.spread) ** 2 - 0.5 * off[:, None] ** 2
    most = heights.max(axis=(0, 1))
    weight = np.exp(heights - most)
    cell = (12 / 120) * (12 / 160) / (2 * np.pi)
    share = 1 / (1 + np.exp(-v))
    whole = weight.sum(axis=(0, 1))
    means = (
        np.einsum("ijk,j->k", weight, share) / whole,
        np.einsum("ijk,i->k", weight, u) / whole,
    )
    return np.log(whole * cell) + most, *means


@pytest.mark.slow
@pytest.mark.parametrize("family", POOLS)
def test_marginal_likelihood_and_mean_availability(family: str) -> None:
    pool = Pool(POOLS[family], 0.5, 1.5, 0.7)
    marginal, share, _ = brute_force(pool)
    found = client_posterior(sums(), pool)
    assert found.log_marginal == pytest.approx(float(marginal.sum()), abs=0.15)
    np.testing.assert_allclose(found.availability, share, atol=0.03)


@pytest.mark.slow
def test_the_likelier_of_two_modes_is_found() -> None:
    # A client that never reports is slow or offline; the prior of v is wide, that of u is not.
    pool = Pool(LogNormal(0.0, 0.4), 0.3, 4.0, 3.5)
    marginal, share, _ = brute_force(pool)
    found = client_posterior(sums(), pool)
    assert share[0] < 0.2
    np.testing.assert_allclose(found.availability, share, atol=0.06)
    assert found.log_marginal == pytest.approx(float(marginal.sum()), abs=1.0)


@pytest.mark.slow
def test_draws_have_the_means_of_the_posterior() -> None:
    pool = Pool(LogNormal(0.0, 0.4), 0.5, 1.5, 0.7)
    _, share, speed = brute_force(pool)
    rng, many = np.random.default_rng(1), 4000
    copies = sums(many)
    u, v = draw_clients(copies, pool, client_posterior(copies, pool), rng)
    u, a = u.reshape(many, CLIENTS), 1 / (1 + np.exp(-v.reshape(many, CLIENTS)))
    # Client 0 has no report: its posterior of u is not normal, and only roughly drawn.
    for values, expected, slack in ((a, share, 0.02), (u, speed, 0.02)):
        error = values.std(axis=0) / np.sqrt(many)
        assert np.all(np.abs(values.mean(axis=0) - expected)[1:] < 4 * error[1:] + slack)


def test_equal_clients_have_no_spread() -> None:
    found = client_posterior(sums(), Pool(LogNormal(0.0, 0.4), 0.0, 1.0, 0.0))
    assert np.all(found.u == 0)
    assert np.all(found.v == 1.0)
    assert np.all(found.uu == 0)
    u, v = draw_clients(sums(), Pool(LogNormal(0.0, 0.4)), found, np.random.default_rng(0))
    assert np.all(u == 0)
    assert np.all(v == 1.0)


def test_value_does_not_depend_on_the_start() -> None:
    pool = Pool(Weibull(2.0, 1.2), 0.5, 1.5, 0.7)
    cold = client_posterior(sums(), pool)
    warm = client_posterior(sums(), pool, client_posterior(sums(), Pool(Exponential(0.3), 2.0)))
    assert warm.log_marginal == pytest.approx(cold.log_marginal, abs=1e-8)
