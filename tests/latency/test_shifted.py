"""A fixed time added to every response time: the same distribution, that much later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Latency,
    LogNormal,
    Mixture,
    ShiftedExponential,
    Uniform,
    Various,
    Weibull,
)
from cafe.latency.shifted import MOST_BREAKS, Shifted, shifted
from tests.support.latencies import wrong

ONE_KIND: list[Latency] = [
    Exponential(0.7),
    ShiftedExponential(0.5, 1.5),
    Weibull(0.6, 1.2),
    Gamma(2.5, 0.5),
    LogNormal(0.2, 0.9, 0.1),
    Uniform(0.5, 2.0),
    Constant(1.5),
    Empirical([0.1, 0.7, 2.3], [1.0, 2.0, 3.0]),
    Mixture([Constant(1.0), Gamma(2.0, 0.5), Empirical([0.3, 0.9])], [0.2, 0.5, 0.3]),
    Various([Weibull(2.0, 1.0)]),
    Shifted(Gamma(2.5, 0.5), 0.4),
]
each_of_one_kind = pytest.mark.parametrize("latency", ONE_KIND, ids=lambda x: type(x).__name__)
T = np.array([0.05, 0.31, 0.93, 1.41, 2.9, 12.0])[:, None]
U = np.array([0.01, 0.37, 0.61, 0.999])[:, None]


def columns(values: object, kinds: int) -> np.ndarray:
    array = np.asarray(values)
    return np.broadcast_to(array, (*array.shape[:-1], kinds)) if array.ndim else array


@each_of_one_kind
@pytest.mark.parametrize("by", [0.0, 0.25, np.array([0.0, 0.25, 3.0])])
def test_all_quantities_are_shifted(latency: Latency, by: float | np.ndarray) -> None:
    later, kinds = shifted(latency, by), np.size(by)
    assert later.kinds == kinds
    for name in ("cdf", "sf", "logsf"):
        got, before = getattr(later, name)(T + by), columns(getattr(latency, name)(T), kinds)
        np.testing.assert_allclose(columns(got, kinds), before, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        columns(later.quantile(U), kinds), columns(latency.quantile(U) + by, kinds), rtol=1e-12
    )
    np.testing.assert_allclose(later.mean(), latency.mean() + by, rtol=1e-12)
    below = latency.mean_below(T) + by * latency.cdf(T)
    np.testing.assert_allclose(
        columns(later.mean_below(T + by), kinds), columns(below, kinds), rtol=1e-9
    )


@each_of_one_kind
def test_draws_are_shifted(latency: Latency) -> None:
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    later = shifted(latency, 2.0).sample(one, 50)
    np.testing.assert_allclose(later, latency.sample(two, 50) + 2.0, rtol=1e-12)


def test_a_family_with_a_shift_keeps_its_class() -> None:
    each = np.array([1.0, 2.0])
    assert shifted(Exponential(3.0), 0.5) == ShiftedExponential(0.5, 3.0)
    assert shifted(Exponential(each), 0.5) == ShiftedExponential(0.5, each)
    assert shifted(ShiftedExponential(0.25, 3.0), 0.5) == ShiftedExponential(0.75, 3.0)
    assert shifted(LogNormal(0.0, each), each) == LogNormal(0.0, each, each)
    assert shifted(Uniform(1.0, 2.0), 0.5) == Uniform(1.5, 2.5)
    assert shifted(Constant(1.0), each) == Constant(np.array([2.0, 3.0]))
    assert shifted(Empirical([1.0, 2.0], [1, 3]), 0.5) == Empirical([1.5, 2.5], [1, 3])
    assert shifted(Shifted(Gamma(2.0, 1.0), 1.0), 0.5) == Shifted(Gamma(2.0, 1.0), 1.5)


def test_uniform_too_narrow_for_its_shift_is_accepted() -> None:
    later = shifted(Uniform(1.0, 2.0), 1e20)  # so large that 1 and 2 are lost in rounding
    assert later == Shifted(Uniform(1.0, 2.0), 1e20)
    assert later.mean() == 1e20


def test_shift_of_0_changes_nothing() -> None:
    for latency in ONE_KIND:
        assert shifted(latency, 0.0) is latency


def test_each_part_of_various_is_shifted_by_its_own_entries() -> None:
    parts = Various([Exponential(np.ones(2)), Gamma(2.0, 1.0), Constant(1.0)])
    later = shifted(parts, np.array([0.5, 0.5, 0.0, 2.0]))
    assert later == Various([ShiftedExponential(0.5, np.ones(2)), Gamma(2.0, 1.0), Constant(3.0)])


def test_cdf_jumps_exactly_at_the_draws() -> None:
    # 0.7 + 0.1 < 0.8 and (0.7 + 0.1) - 0.7 < 0.1 in doubles: t - shift alone would miss the jump.
    rng = np.random.default_rng(5)
    values, shifts = rng.random(40), rng.random(60) * 10.0 ** rng.integers(-3, 6, 60)
    assert np.any((shifts[:, None] + values) - shifts[:, None] < values)
    latency = Shifted(Empirical(values), shifts)
    for rank, value in enumerate(np.sort(values), 1):
        at = shifts + value
        assert np.all(latency.cdf(at) >= rank / 40 - 1e-12)
        first = np.count_nonzero(shifts[:, None] + values < at[:, None], axis=1)
        np.testing.assert_allclose(latency.cdf(np.nextafter(at, 0.0)), first / 40, atol=1e-12)


def test_breaks_are_the_shifts_and_the_jumps_after_them() -> None:
    assert Shifted(Gamma(2.0, 1.0), np.array([2.0, 0.5])).breaks().tolist() == [0.5, 2.0]
    steps = Shifted(Empirical([1.0, 4.0]), np.array([0.0, 2.0]))
    assert steps.breaks().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 6.0]


def test_number_of_breaks_is_bounded() -> None:
    shifts = np.linspace(1.0, 2.0, 500_000)
    found = Shifted(Empirical(np.linspace(1.0, 5.0, 999)), shifts).breaks()
    assert 2000 < found.size <= MOST_BREAKS
    assert found[0] == 1.0
    assert found[-1] == 7.0


def test_infinite_shift_is_refused() -> None:
    for latency in (LogNormal(0.0, 1.0, 1e308), Constant(1e308), Gamma(1.0, 1.0)):
        with pytest.raises(InputError, match="finite"):
            shifted(shifted(latency, 1.5e308), 1.5e308)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Shifted(wrong(1.0), 1.0), "latency must"),
        (lambda: Shifted(Gamma(1.0, 1.0), wrong("1")), "shift must be a number"),
        (lambda: Shifted(Gamma(1.0, 1.0), wrong([])), "shift must be a number"),
        (lambda: Shifted(Gamma(1.0, 1.0), np.ones((2, 1))), "shift must be a number"),
        (lambda: Shifted(Gamma(1.0, 1.0), -1.0), "not negative and finite. Got -1"),
        (lambda: Shifted(Gamma(1.0, 1.0), np.array([1.0, np.inf])), "finite. Got inf"),
        (lambda: Shifted(Gamma(np.ones(3), 1.0), np.ones(2)), "one per kind of client .3.* Got 2"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], Latency], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
