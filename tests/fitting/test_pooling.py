"""Partial pooling: between one fit for all and one fit per client, and better than both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.fitting.families import estimated_parameters
from cafe.fitting.fit import fit
from cafe.fitting.pooling import ClientFits
from cafe.latency import Constant, Exponential, Gamma, Latency, LogNormal, Uniform, Weibull
from cafe.latency.base import Floats

pytestmark = pytest.mark.slow

NAN = float("nan")

POOLS: dict[str, Latency] = {
    "exponential": Exponential(1.0),
    "weibull": Weibull(2.5, 1.0),
    "lognormal": LogNormal(0.0, 0.3),
    "gamma": Gamma(4.0, 0.3),
}
SMOOTH = list(POOLS)
Pooling = Callable[..., ClientFits]


def fleet(
    pool: Latency, clients: int, each: int, spread: float, seed: int, deadline: float = 1e9
) -> tuple[Floats, Floats, Pooling]:
    """The true log s, the times, and how to pool them; by default with all smooth families."""
    rng = np.random.default_rng(seed)
    log_s = spread * rng.standard_normal(clients)
    times = pool.sample(rng, (clients, each)) * np.exp(log_s)[:, None]
    seen = np.where(times <= deadline, times, NAN)
    names = np.repeat(np.arange(clients), each)

    def pooled(families: str | list[str] = SMOOTH) -> ClientFits:
        return fit(seen.ravel(), deadline, names, families=families).by_client()

    return log_s, seen, pooled


@pytest.mark.parametrize("deadline", [1e9, 1.2])
@pytest.mark.parametrize("family", POOLS)
def test_finds_the_pooled_parameters_the_spread_and_the_clients(
    family: str, deadline: float
) -> None:
    pool = POOLS[family]
    log_s, seen, pooled = fleet(pool, 400, 8, 0.5, 1, deadline)
    found = pooled()
    assert found.family == family
    assert found.spread == pytest.approx(0.5, rel=0.15)
    assert estimated_parameters(found.pooled) == pytest.approx(
        estimated_parameters(pool), rel=0.15, abs=0.08
    )
    z = (np.log(found.scale) - log_s) / found.standard_error
    assert 0.8 < np.sqrt(np.mean(z**2)) < 1.2
    assert found.reports.tolist() == np.sum(~np.isnan(seen), axis=1).tolist()
    assert found.misses.tolist() == np.sum(np.isnan(seen), axis=1).tolist()


def test_equal_clients_have_the_pooled_parameters() -> None:
    times = np.tile(np.linspace(0.5, 1.5, 20), 30)
    found = fit(times, client=np.repeat(np.arange(30), 20), families=SMOOTH).by_client()
    assert found.spread == 0
    assert np.all(found.scale == 1)
    assert np.all(found.standard_error == 0)
    assert estimated_parameters(found.pooled) == pytest.approx(
        fit(times, families=found.family).best.parameters, rel=1e-4
    )


def test_single_client_has_the_pooled_parameters() -> None:
    found = fit([1.0, 2.0, 3.0], families="weibull").by_client()
    assert (found.spread, found.scale.tolist()) == (0, [1.0])
    assert found.federation().clients == 1


def test_pooled_shape_is_that_of_one_client_not_of_the_mixture() -> None:
    _, seen, pooled = fleet(LogNormal(0.0, 0.3), 300, 6, 0.6, 2)
    found = pooled("lognormal")
    together = fit(seen.ravel(), families="lognormal").best.parameters["sigma"]
    assert together > 0.6
    assert estimated_parameters(found.pooled)["sigma"] == pytest.approx(0.3, abs=0.03)


def test_pooling_beats_separate_fits_and_one_common_fit() -> None:
    errors = []
    for seed in range(4):
        log_s, seen, pooled = fleet(Exponential(1.0), 150, 3, 0.5, 100 + seed, 2.0)
        found = pooled("exponential")
        reports = np.sum(~np.isnan(seen), axis=1)
        waited = np.sum(np.where(np.isnan(seen), 2.0, seen), axis=1)
        # The estimate of each client alone, with half a report for clients without reports.
        own = np.log(waited / np.maximum(reports, 0.5))
        errors.append([np.mean((x - log_s) ** 2) for x in (np.log(found.scale), own, 0 * own)])
    together, alone, alike = np.mean(errors, axis=0)
    assert together < 0.85 * alike
    assert together < 0.5 * alone


def test_client_with_many_observations_is_hardly_shrunk() -> None:
    rng = np.random.default_rng(3)
    few, many = LogNormal(0.0, 0.4).sample(rng, (20, 3)), 5 * LogNormal(0.0, 0.4).sample(rng, 5000)
    names = [*np.repeat(np.arange(20), 3).astype(str), *["slow"] * 5000]
    found = fit(np.concatenate([few.ravel(), many]), client=names, families="lognormal").by_client()
    slow = found.latency.take(np.array([20]))
    own = np.exp(np.mean(np.log(many)))
    assert float(slow.quantile(0.5)[0]) == pytest.approx(own, rel=0.002)


def test_fewer_observations_are_shrunk_more() -> None:
    # Clients 0 to 4 are three times as slow, all with the same times, seen 1, 2, 4, 8, 16 times.
    rng = np.random.default_rng(4)
    times = [np.full(2**k, 3.0) for k in range(5)]
    times += list(
        LogNormal(0.0, 0.3).sample(rng, (40, 6)) * np.exp(0.4 * rng.standard_normal((40, 1)))
    )
    names = np.repeat(np.arange(45), [each.size for each in times])
    found = fit(np.concatenate(times), client=names, families="lognormal").by_client()
    slow = np.log(found.scale[:5])
    limit = np.log(3.0) - estimated_parameters(found.pooled)["mu"]
    assert np.all(np.diff(slow) > 0)
    assert 0 < slow[0] < slow[4] < limit
    assert np.all(np.diff(found.standard_error[:5]) < 0)
    # The exact result for a log-normal: a mean weighted by precisions.
    n, tau, sigma = 2.0 ** np.arange(5), found.spread, estimated_parameters(found.pooled)["sigma"]
    np.testing.assert_allclose(slow, limit * n / (n + sigma**2 / tau**2), rtol=1e-4)
    np.testing.assert_allclose(
        found.standard_error[:5], (n / sigma**2 + tau**-2) ** -0.5, rtol=1e-4
    )


@pytest.mark.parametrize("family", POOLS)
def test_client_without_reports_is_slower_the_more_it_missed(family: str) -> None:
    rng = np.random.default_rng(5)
    log_s = 0.5 * rng.standard_normal(60)
    times = [*(POOLS[family].sample(rng, (60, 6)) * np.exp(log_s)[:, None])]
    deadline = 1.5
    times += [np.full(k, np.inf) for k in (1, 3, 9)]
    names = np.repeat(np.arange(63), [each.size for each in times])
    flat = np.concatenate(times)
    found = fit(np.where(flat <= deadline, flat, NAN), deadline, names, families=family).by_client()
    scale = found.scale[60:]
    assert found.reports[60:].tolist() == [0, 0, 0]
    assert found.misses[60:].tolist() == [1, 3, 9]
    assert 1 < scale[0] < scale[1] < scale[2]
    assert np.log(scale[2]) < 5 * found.spread


def test_time_unit_does_not_matter() -> None:
    rng = np.random.default_rng(6)
    times = Weibull(2.0, 1.0).sample(rng, (30, 5)) * np.exp(0.4 * rng.standard_normal((30, 1)))
    names = np.repeat(np.arange(30), 5)
    one, other = (
        fit((times * unit).ravel(), client=names, families=["weibull", "gamma"]).by_client()
        for unit in (1.0, 1e4)
    )
    assert one.family == other.family
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-4)
    assert one.pooled.mean() * 1e4 == pytest.approx(other.pooled.mean(), rel=1e-4)


def test_families_with_an_edge_are_replaced_by_a_smooth_one() -> None:
    rng = np.random.default_rng(7)
    times = Uniform(1.0, 3.0).sample(rng, 100)
    found = fit(times, client=np.repeat(np.arange(10), 10), families="uniform").by_client()
    assert found.family in SMOOTH


def test_equal_constant_times_make_all_clients_equal() -> None:
    found = fit([2.0, 2.0, 2.0], client=["a", "b", "a"]).by_client()
    assert found.latency == Constant(np.array([2.0, 2.0]))
    assert found.reports.tolist() == [2, 1]


def test_constant_clients_that_differ_keep_their_times() -> None:
    found = fit(np.repeat([1.0, 2.0, 3.0, 4.0], 5), client=np.repeat(list("abcd"), 5)).by_client()
    np.testing.assert_allclose(found.latency.quantile(0.5), [1.0, 2.0, 3.0, 4.0], rtol=0.02)


def test_the_federation_has_one_client_per_name() -> None:
    _, _, pooled = fleet(Exponential(1.0), 25, 4, 0.8, 8, 2.0)
    found = pooled("exponential")
    federation = found.federation()
    assert federation.clients == federation.kinds == 25 == len(found.clients)
    np.testing.assert_allclose(federation.report(1.0), found.latency.cdf(1.0))
    np.testing.assert_allclose(federation.latency.mean(), found.pooled.mean() * found.scale)


def test_large_fleet_is_pooled_like_a_small_one() -> None:
    log_s, _, pooled = fleet(Weibull(2.0, 1.0), 20_000, 5, 0.4, 9, 1.5)
    found = pooled("weibull")
    assert found.scale.size == 20_000
    assert found.spread == pytest.approx(0.4, rel=0.1)
    z = (np.log(found.scale) - log_s) / found.standard_error
    assert 0.9 < np.sqrt(np.mean(z**2)) < 1.1


def offline_fleet(
    availability: Floats | float, deadline: float, seed: int, families: str | list[str] = SMOOTH
) -> ClientFits:
    """The fit of 60 log-normal clients whose medians are around 8 s, in 100 rounds."""
    rng = np.random.default_rng(seed)
    times = LogNormal(np.log(8), 0.35).sample(rng, (100, 60))
    times *= np.exp(0.5 * rng.standard_normal(60))
    times[rng.random(times.shape) >= availability] = np.inf
    seen = np.where(times <= deadline, times, NAN)
    return fit(seen.ravel(), deadline, np.tile(np.arange(60), 100), families=families).by_client()


@pytest.mark.parametrize("availability", [0.5, 0.8, 0.95])
def test_offline_clients_are_not_taken_for_slow_ones(availability: float) -> None:
    found = offline_fleet(availability, 20.0, 11)
    # Half of the requests of the slowest clients come after the deadline: a wider error.
    error = 2 * np.sqrt(availability * (1 - availability) / 6000) + 0.005
    assert abs(found.availability.mean() - availability) < 3 * error
    low, high = found.availability_range
    assert low < found.availability.mean() < high
    assert high - low < 0.1
    assert found.pooled.quantile(0.5) == pytest.approx(8, rel=0.25)
    assert estimated_parameters(found.pooled)["sigma"] == pytest.approx(0.35, rel=0.1)
    federation = found.federation()
    np.testing.assert_allclose(federation.availability, found.availability)


def test_availability_of_clients_that_always_answer_is_one() -> None:
    for seed in (12, 13):
        found = offline_fleet(1.0, 20.0, seed)
        assert np.all(found.availability > 0.99)
        assert found.availability_range[1] > 0.999


def test_unequal_availability_is_found_per_client() -> None:
    truth = 1 / (1 + np.exp(-1 - np.random.default_rng(14).standard_normal(60)))
    found = offline_fleet(truth, 30.0, 15)
    assert found.unevenness == pytest.approx(1.0, rel=0.35)
    z = (found.availability - truth) / found.availability_error
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.4
    alike = np.mean((truth - truth.mean()) ** 2)
    assert np.mean((found.availability - truth) ** 2) < 0.15 * alike


def test_evidence_says_what_was_observed() -> None:
    found = offline_fleet(0.8, 20.0, 16, "lognormal")
    evidence = found.federation().evidence
    assert evidence is not None
    assert evidence.longest == 20.0
    assert evidence.reports == found.reports.sum()
    assert evidence.reports + evidence.misses == 6000
    assert len(evidence.alternatives) == 40
    assert all(each.clients == 60 for each in evidence.alternatives)


def test_longest_time_without_deadlines_is_the_longest_report() -> None:
    found = fit([1.0, 2.0, 7.0], families="exponential").by_client()
    assert found.evidence.longest == 7.0


def test_same_log_gives_the_same_alternatives() -> None:
    one, other = (offline_fleet(0.8, 20.0, 17, "lognormal").evidence for _ in range(2))
    for first, second in zip(one.alternatives, other.alternatives, strict=True):
        np.testing.assert_array_equal(first.latency.mean(), second.latency.mean())
        np.testing.assert_array_equal(first.availability, second.availability)
