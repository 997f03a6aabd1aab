"""Properties of every latency that the rest of CAFe relies on.

A latency's *shape* is () for one kind of client and (kinds,) for several; its results have the
shape of t broadcast against it.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pickle
import pkgutil
from collections.abc import Iterator
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cafe.latency
from cafe.errors import InputError
from cafe.latency import (
    Empirical,
    Latency,
)
from cafe.latency.base import Floats
from tests.support.latencies import (
    EXAMPLES,
    Example,
    every_latency,
    every_smooth_latency,
    integral,
    integration_points,
    shape_of,
    shares,
    steady,
    times,
    wrong,
)


def discovered() -> Iterator[type[Latency]]:
    """Every concrete latency of the package, exported or not."""
    for module in pkgutil.iter_modules(cafe.latency.__path__, "cafe.latency."):
        importlib.import_module(module.name)
    waiting = Latency.__subclasses__()
    while waiting:
        family = waiting.pop()
        waiting += family.__subclasses__()
        if not inspect.isabstract(family) and family.__module__.startswith("cafe.latency."):
            yield family


def test_every_latency_has_an_example_of_one_kind_and_of_several() -> None:
    assert set(discovered()) == set(EXAMPLES)
    for family, examples in EXAMPLES.items():
        kinds = [example.make().kinds for example in examples]
        assert min(kinds) == 1, family
        assert max(kinds) > 1, family
        assert all(type(example.make()) is family for example in examples)


@every_latency
def test_cdf_is_0_before_the_broadcast_and_tends_to_1(
    example: Example,
) -> None:
    latency = example.make()
    for t in (-np.inf, -1.0, 0.0):
        assert np.all(latency.cdf(t) == 0.0)
        np.testing.assert_allclose(latency.sf(t), np.ones(shape_of(latency)), rtol=1e-15)
        np.testing.assert_allclose(latency.logsf(t), 0.0, atol=1e-15)
        assert np.all(latency.mean_below(t) == 0.0)
    for t in (1e12, np.inf):
        np.testing.assert_allclose(latency.cdf(t), np.ones(shape_of(latency)), rtol=1e-15)
        assert np.all(latency.sf(t) < 1e-100)
        assert np.all(latency.logsf(t) < -230.0)
        np.testing.assert_allclose(latency.mean_below(t), latency.mean(), rtol=1e-12)


@every_latency
@steady
@given(a=times, b=times)
def test_cdf_is_an_increasing_probability(example: Example, a: float, b: float) -> None:
    latency = example.make()
    sooner, later = latency.cdf(min(a, b)), latency.cdf(max(a, b))
    assert np.all((sooner >= 0) & (sooner <= later) & (later <= 1))
    assert np.all(latency.sf(min(a, b)) >= latency.sf(max(a, b)))


@every_latency
@steady
@given(t=times)
def test_cdf_and_sf_are_complements(example: Example, t: float) -> None:
    latency = example.make()
    np.testing.assert_allclose(latency.cdf(t) + latency.sf(t), 1.0, rtol=0, atol=1e-14)


@every_latency
def test_sf_is_precise_in_the_far_tail(example: Example) -> None:
    latency = example.make()
    t = np.geomspace(0.1, 1e4, 400)[:, None]
    sf, logsf = latency.sf(t), latency.logsf(t)
    assert np.all(logsf[1:] <= logsf[:-1])
    seen = sf > 1e-300
    np.testing.assert_allclose(np.log(sf[seen]), logsf[seen], rtol=1e-10, atol=1e-15)


@every_smooth_latency
def test_log_sf_falls_by_the_integral_of_the_hazard(example: Example) -> None:
    latency = example.make()

    def hazard(t: Floats) -> Floats:
        held = np.isfinite(latency.logsf(t))  # sf of a uniform is 0 after its end
        with np.errstate(invalid="ignore"):
            return np.where(held, np.exp(latency.logpdf(t) - latency.logsf(t)), 0.0)

    for start, end in itertools.pairwise([5.0, 50.0, 500.0, 5000.0]):
        before, after = latency.logsf(start), latency.logsf(end)
        with np.errstate(invalid="ignore"):
            fall = np.where(np.isfinite(after), before - after, 0.0)
        points = np.linspace(start, end, 200)
        np.testing.assert_allclose(np.ravel(fall), integral(hazard, points), rtol=1e-6, atol=1e-4)


@every_latency
@steady
@given(u=shares)
def test_quantile_is_the_inverse_of_the_cdf(example: Example, u: float) -> None:
    latency = example.make()
    t = latency.quantile(u)
    assert t.shape == shape_of(latency)
    assert np.all(latency.cdf(t) >= u - 1e-11)
    assert np.all(latency.cdf(t * (1 - 1e-9)) < u + 1e-11)


@every_latency
def test_quantile_at_the_ends(example: Example) -> None:
    latency = example.make()
    assert np.all(latency.cdf(latency.quantile(0.0)) == 0.0)
    assert np.all(latency.cdf(latency.quantile(1.0)) >= 1 - 1e-15)


@every_latency
def test_samples_follow_the_cdf(example: Example) -> None:
    latency, draws = example.make(), 4000
    sample = latency.sample(np.random.default_rng(7), draws).reshape(draws, latency.kinds)
    assert np.all((sample > 0) & np.isfinite(sample))
    ordered = np.sort(sample, axis=0)
    rank = np.arange(draws)[:, None]
    # Where draws are equal, the first and the last of them bound the jump.
    first = np.stack([np.searchsorted(c, c, "left") for c in ordered.T], axis=1)
    last = np.stack([np.searchsorted(c, c, "right") for c in ordered.T], axis=1)
    assert np.all((first <= rank) & (rank < last))
    above = np.abs(last / draws - latency.cdf(ordered))
    below = np.abs(first / draws - latency.cdf(np.nextafter(ordered, 0.0)))
    critical = 1.95 / np.sqrt(draws)  # of Kolmogorov's distance: passed once in a thousand
    assert max(above.max(), below.max()) < critical


@every_latency
def test_samples_have_the_mean(example: Example) -> None:
    latency, draws = example.make(), 4000
    sample = latency.sample(np.random.default_rng(8), draws).reshape(draws, latency.kinds)
    error = sample.std(axis=0) / np.sqrt(draws) + 1e-12
    assert np.all(np.abs(sample.mean(axis=0) - np.ravel(latency.mean())) < 4.5 * error)


@every_latency
@pytest.mark.parametrize("t", [0.3, 1.0, 2.2, 7.0, 40.0])
def test_mean_below_is_an_integral_of_the_cdf(example: Example, t: float) -> None:
    latency = example.make()
    area = integral(latency.cdf, integration_points(latency, 0.0, t))
    expected = t * np.ravel(latency.cdf(t)) - area
    np.testing.assert_allclose(np.ravel(latency.mean_below(t)), expected, rtol=1e-8, atol=1e-10)


@every_latency
@steady
@given(t=st.floats(0.0, 1e12))
def test_mean_below_is_at_most_t_times_the_cdf(example: Example, t: float) -> None:
    latency = example.make()
    below = latency.mean_below(t)
    assert np.all(below >= 0)
    assert np.all(below <= t * latency.cdf(t) * (1 + 1e-12))
    assert np.all(below <= latency.mean() * (1 + 1e-12))


@every_smooth_latency
def test_density_integrates_to_the_cdf(example: Example) -> None:
    latency = example.make()
    assert np.all(latency.logpdf(-1.0) == -np.inf)
    for start, end in itertools.pairwise([0.1, 0.9, 1.7, 4.0, 30.0]):
        area = integral(
            lambda t: np.exp(latency.logpdf(t)), integration_points(latency, start, end)
        )
        increment = np.ravel(latency.cdf(end) - latency.cdf(start))
        np.testing.assert_allclose(area, increment, rtol=1e-9, atol=1e-11)


@every_latency
def test_density_is_refused_where_there_is_none(example: Example) -> None:
    if not example.density:
        with pytest.raises(InputError, match="has no density"):
            example.make().logpdf(1.0)


@every_latency
@steady
@given(t=times, factor=st.floats(1e-3, 1e3))
def test_scaled_latency_takes_proportionally_longer(
    example: Example, t: float, factor: float
) -> None:
    latency = example.make()
    slower = latency.scaled(factor)
    edge = np.isclose(t, latency.breaks(), rtol=1e-9).any()  # a jump may round to either side
    if not edge:
        np.testing.assert_allclose(slower.cdf(factor * t), latency.cdf(t), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slower.mean(), factor * latency.mean(), rtol=1e-12)
    assert type(slower) is type(latency)


@every_latency
def test_breaks_are_sorted_times(example: Example) -> None:
    breaks = example.make().breaks()
    assert breaks.ndim == 1
    assert np.all(breaks >= 0)
    assert np.all(np.diff(breaks) > 0)


@every_latency
def test_a_latency_is_a_value(example: Example) -> None:
    one, two = example.make(), example.make()
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != one.scaled(2.0)
    assert one != wrong("a latency")
    for name in vars(one):
        with pytest.raises(FrozenInstanceError):
            setattr(one, name, 1.0)
        held = getattr(one, name)
        if isinstance(held, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                held[...] = 1.0


def test_latencies_that_differ_are_unequal() -> None:
    made = [example.make() for examples in EXAMPLES.values() for example in examples]
    for one, two in itertools.combinations(made, 2):
        assert one != two
    assert Empirical([1.0]) != Empirical([1.0], kinds=2)
