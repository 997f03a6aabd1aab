"""The choice between families, and between slow and offline clients."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.observations import Observations
from cafe.fitting.pool_search import EDGE, POOLED_FAMILIES, PoolFit, fit_pools
from cafe.latency import LogNormal

pytestmark = pytest.mark.slow


def pools(
    availability: float, uneven: float, seed: int, clients: int = 60, families: str = "lognormal"
) -> list[PoolFit]:
    """The fitted pools of a log of log-normal clients with deadline 2 and 60 rounds."""
    rng = np.random.default_rng(seed)
    scale = np.exp(0.5 * rng.standard_normal(clients))
    share = np.full(clients, availability)
    if uneven:
        odds = availability / (1 - availability) * np.exp(uneven * rng.standard_normal(clients))
        share = odds / (1 + odds)
    times = LogNormal(0.0, 0.35).sample(rng, (60, clients)) * scale
    times[rng.random(times.shape) >= share] = np.inf
    seen = Observations(
        np.where(times <= 2.0, times, np.nan).ravel(), 2.0, np.tile(np.arange(clients), 60)
    )
    sample = CensoredSample.of(seen, by_client=True)
    return fit_pools(sample, clients, families.split(","))


def test_nobody_offline_gives_availability_one() -> None:
    for seed in range(3):
        best = pools(1.0, 0.0, seed)[0].pool
        assert 1 / (1 + np.exp(-best.level)) > 0.99
        assert best.latency.sigma == pytest.approx(0.35, rel=0.05)  # type: ignore[attr-defined]
        assert best.spread == pytest.approx(0.5, rel=0.35)


@pytest.mark.parametrize("availability", [0.5, 0.8, 0.95])
def test_common_availability_is_found(availability: float) -> None:
    best = pools(availability, 0.0, 4)[0]
    error = np.sqrt(availability * (1 - availability) / 3600)
    found = 1 / (1 + np.exp(-best.pool.level))
    assert abs(found - availability) < 5 * error
    assert best.pool.unevenness < 0.3


def test_unequal_availability_is_found() -> None:
    best = pools(0.7, 1.0, 5)[0]
    assert best.model.edges == 2
    assert best.pool.unevenness == pytest.approx(1.0, rel=0.3)


def test_other_families_are_behind() -> None:
    found = pools(0.8, 0.0, 6, families=",".join(POOLED_FAMILIES))
    assert found[0].model.family == "lognormal"
    scores = [each.score for each in found]
    assert scores == sorted(scores)
    assert {each.model.family for each in found} == set(POOLED_FAMILIES)


def test_score_charges_edges_more_than_regular_parameters() -> None:
    found = pools(0.8, 0.0, 7)
    one = next(each for each in found if each.model.edges == 1)
    # Two parameters of the log-normal and a spread between clients; then the availability.
    assert one.score == pytest.approx(2 * 3 + EDGE - 2 * one.log_likelihood)
