"""Several kinds in one latency: each gives the same results as alone, and times broadcast."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cafe.latency import (
    Empirical,
)
from tests.support.latencies import (
    Example,
    every_latency,
    every_value,
    shape_of,
)


@every_latency
def test_samples_of_several_kinds_are_independent(example: Example) -> None:
    latency, draws = example.make(), 4000
    sample = latency.sample(np.random.default_rng(9), draws).reshape(draws, latency.kinds)
    sample = sample[:, sample.std(axis=0) > 0]
    for one, two in itertools.combinations(sample.T, 2):
        assert abs(np.corrcoef(one, two)[0, 1]) < 4.5 / np.sqrt(draws)


@every_latency
def test_samples_have_the_requested_shape_and_depend_only_on_the_seed(example: Example) -> None:
    latency = example.make()
    for size, lead in ((), ()), (5, (5,)), ((2, 3), (2, 3)):
        one = latency.sample(np.random.default_rng(1), size)
        two = latency.sample(np.random.default_rng(1), size)
        assert one.shape == lead + shape_of(latency)
        np.testing.assert_array_equal(one, two)


@every_latency
def test_kinds_are_scaled_each_by_its_own_factor(example: Example) -> None:
    latency = example.make()
    factor = np.arange(2.0, 2.0 + latency.kinds)
    if isinstance(latency, Empirical) or (latency.kinds > 1 and not example.density):
        return  # one empirical distribution for all kinds takes only one factor
    scaled = latency.scaled(factor if shape_of(latency) else factor[0])
    np.testing.assert_allclose(scaled.mean(), factor.reshape(shape_of(latency)) * latency.mean())


@every_latency
def test_take_selects_columns(example: Example) -> None:
    latency = example.make()
    index = np.sort(np.arange(2 * latency.kinds) % latency.kinds)[1:]
    taken = latency.take(index)
    assert taken.kinds == index.size
    for got, whole in zip(every_value(taken), every_value(latency), strict=True):
        columns = np.broadcast_to(whole, (len(whole), latency.kinds))[:, index]
        np.testing.assert_allclose(np.broadcast_to(got, columns.shape), columns, rtol=1e-13)


@every_latency
def test_each_kind_equals_itself_alone(example: Example) -> None:
    latency = example.make()
    alone = [every_value(latency.take(np.array([kind]))) for kind in range(latency.kinds)]
    for together, *each in zip(every_value(latency), *alone, strict=True):
        np.testing.assert_allclose(together, np.concatenate(each, axis=-1), rtol=1e-13)


@every_latency
def test_times_broadcast_against_the_kinds(example: Example) -> None:
    latency, shape = example.make(), shape_of(example.make())
    calls = [latency.cdf, latency.sf, latency.logsf, latency.mean_below, latency.quantile]
    if example.density:
        calls.append(latency.logpdf)
    for call in calls:
        assert call(0.5).shape == shape
        assert call(np.full((4, 1), 0.5)).shape == (4, *(shape or (1,)))
        assert call(np.full((2, 4, 1), 0.5)).shape == (2, 4, *(shape or (1,)))
        assert call(np.full(latency.kinds, 0.5)).shape == (latency.kinds,)
        if shape and latency.kinds > 1:
            with pytest.raises(ValueError, match=r"broadcast|shape"):
                call(np.full(latency.kinds + 2, 0.5))
