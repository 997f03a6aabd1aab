"""Plausible pools have the spread that theory gives them."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.observations import Observations
from cafe.fitting.pool_draws import draw_pools
from cafe.fitting.pool_search import fit_pools
from cafe.latency import Exponential

pytestmark = pytest.mark.slow


def sample(seed: int, reports: int = 400) -> CensoredSample:
    times = Exponential(1.0).sample(np.random.default_rng(seed), reports)
    return CensoredSample.of(Observations(times))


def test_draws_of_a_rate_have_its_standard_error() -> None:
    # The rate of n exponential times has the standard error 1 / sqrt(n), relative to itself.
    one = sample(1)
    fits = fit_pools(one, 1, ["exponential"])
    drawn = draw_pools(fits, ClientSums.of(one, 1), 400, np.random.default_rng(2))
    logs = np.log([each.latency.rate for each in drawn])  # type: ignore[attr-defined]
    assert logs.std() == pytest.approx(1 / np.sqrt(400), rel=0.15)
    best = np.log(fits[0].pool.latency.rate)  # type: ignore[attr-defined]
    assert abs(logs.mean() - best) < 0.02


def test_families_share_the_draws_by_their_weights() -> None:
    one = sample(3)
    fits = fit_pools(one, 1, ["exponential", "weibull", "gamma"])
    drawn = draw_pools(fits, ClientSums.of(one, 1), 200, np.random.default_rng(4))
    weights = np.exp(-0.5 * np.array([each.score - fits[0].score for each in fits]))
    shares = weights / weights.sum()
    for each, share in zip(fits, shares, strict=True):
        kind = type(each.pool.latency)
        count = sum(type(pool.latency) is kind for pool in drawn)
        assert abs(count - 200 * share) <= 1


def test_same_seed_gives_the_same_draws() -> None:
    one = sample(5, 50)
    fits = fit_pools(one, 1, ["weibull"])
    first, second = (
        draw_pools(fits, ClientSums.of(one, 1), 5, np.random.default_rng(6)) for _ in range(2)
    )
    assert [each.latency for each in first] == [each.latency for each in second]
