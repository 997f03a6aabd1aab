"""Every latency through one set of properties: what the rest of CAFe may rely on.

A latency's *shape* is () for one kind of client and (kinds,) for several; whatever it calculates
has the shape of t broadcast against it.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cafe.latency
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
from cafe.latency.base import Family, Floats
from cafe.latency.shifted import Shifted

steady = settings(derandomize=True, deadline=None, max_examples=25, database=None)


@dataclass(frozen=True)
class Example:
    """How to make a latency, as often as wanted, and whether it has a density."""

    make: Callable[[], Latency]
    density: bool = True


EXAMPLES: dict[type[Latency], list[Example]] = {
    Exponential: [
        Example(lambda: Exponential(0.7)),
        Example(lambda: Exponential(np.array([0.2, 1.0, 5.0]))),
    ],
    ShiftedExponential: [
        Example(lambda: ShiftedExponential(0.5, 1.5)),
        Example(lambda: ShiftedExponential(np.array([0.0, 2.0]), 1.5)),
    ],
    Weibull: [
        Example(lambda: Weibull(0.6, 1.2)),
        Example(lambda: Weibull(np.array([0.8, 1.0, 3.0]), np.array([2.0, 1.0, 0.5]))),
    ],
    Gamma: [
        Example(lambda: Gamma(0.7, 1.0)),
        Example(lambda: Gamma(np.array([1.0, 2.5, 30.0]), np.array([1.0, 0.5, 0.1]))),
    ],
    LogNormal: [
        Example(lambda: LogNormal(0.2, 0.9)),
        Example(lambda: LogNormal(np.array([-1.0, 0.0, 1.0]), 0.5, np.array([0.0, 1.0, 2.5]))),
    ],
    Uniform: [
        Example(lambda: Uniform(0.0, 2.0)),
        Example(lambda: Uniform(np.array([0.5, 1.0]), np.array([2.0, 1.5]))),
    ],
    Constant: [
        Example(lambda: Constant(1.5), density=False),
        Example(lambda: Constant(np.array([0.5, 2.0])), density=False),
    ],
    Empirical: [
        Example(lambda: Empirical([0.5, 2.0, 2.0, 3.5]), density=False),
        Example(lambda: Empirical([1.0, 2.5, 4.0], [1.0, 3.0, 2.0], kinds=3), density=False),
    ],
    Mixture: [
        Example(lambda: Mixture([Exponential(2.0), LogNormal(1.0, 0.4, 0.5)], [3.0, 1.0])),
        Example(
            lambda: Mixture([Exponential(np.array([0.5, 2.0, 4.0])), Uniform(1.0, 3.0)], [0.5, 0.5])
        ),
        Example(lambda: Mixture([Constant(1.0), Gamma(2.0, 0.5)], [0.2, 0.8]), density=False),
        Example(lambda: Mixture([Exponential(1.0), Exponential(np.array([3.0]))], [1, 2])),
    ],
    Various: [
        Example(lambda: Various([Weibull(2.0, 1.0)])),
        Example(
            lambda: Various(
                [
                    Exponential(np.array([0.5, 2.0])),
                    LogNormal(0.0, 0.5),
                    Mixture([Exponential(1.0), Gamma(3.0, 0.2)], [0.5, 0.5]),
                ]
            )
        ),
        Example(lambda: Various([Empirical([1.0, 2.0], kinds=2), Exponential(1.0)]), density=False),
    ],
    Shifted: [
        Example(lambda: Shifted(Weibull(0.8, 1.2), 0.7)),
        Example(lambda: Shifted(Gamma(np.array([0.7, 2.5, 30.0]), 0.5), np.array([0.0, 0.3, 2.0]))),
        Example(lambda: Shifted(Weibull(2.0, 1.0), np.array([0.1, 1.1]))),
        Example(lambda: Shifted(Mixture([Exponential(1.0), Uniform(1.0, 2.0)], [1, 1]), 0.3)),
        Example(
            lambda: Shifted(Empirical([0.1, 0.7, 2.3], [1, 2, 3]), np.array([0.1, 0.3, 1.0])),
            density=False,
        ),
    ],
}

ALL = {
    f"{family.__name__}-{number}": example
    for family, examples in EXAMPLES.items()
    for number, example in enumerate(examples)
}
SMOOTH = {name: example for name, example in ALL.items() if example.density}
every_latency = pytest.mark.parametrize("example", ALL.values(), ids=ALL)
every_smooth_latency = pytest.mark.parametrize("example", SMOOTH.values(), ids=SMOOTH)

# A value of every parameter that all families accept.
GOOD = {"rate": 1.0, "shift": 0.5, "shape": 2.0, "scale": 1.0, "mu": 0.0, "sigma": 1.0}
GOOD |= {"low": 1.0, "high": 2.0, "value": 1.0}
MAY_BE_ZERO = {"shift", "low", "mu"}
MAY_BE_NEGATIVE = {"mu"}

# Where drawn parameters lie: wide, but with moments that doubles can hold.
RANGES = {"rate": (1e-3, 1e3), "shift": (0.0, 100.0), "shape": (0.3, 30.0), "scale": (1e-3, 1e3)}
RANGES |= {"mu": (-5.0, 5.0), "sigma": (0.05, 2.5), "low": (0.0, 10.0), "high": (10.5, 99.0)}
RANGES |= {"value": (1e-3, 1e3)}

times = st.one_of(
    st.floats(0.0, 60.0),
    st.floats(1e-12, 1e12),
    st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, np.inf]),
)
shares = st.floats(1e-12, 1 - 1e-12)


def discovered() -> Iterator[type[Latency]]:
    """Every concrete latency of the package, exported or not."""
    for module in pkgutil.iter_modules(cafe.latency.__path__, "cafe.latency."):
        importlib.import_module(module.name)
    waiting = Latency.__subclasses__()
    while waiting:
        family = waiting.pop()
        waiting += family.__subclasses__()
        if not inspect.isabstract(family) and family.__module__.startswith("cafe."):
            yield family


def wrong(value: Any) -> Any:
    """A value of a type that a checker would not let pass."""
    return value


def parametric() -> list[type[Family]]:
    return [family for family in EXAMPLES if issubclass(family, Family)]


def parameters_of(family: type[Family]) -> list[str]:
    return list(inspect.signature(family).parameters)


def drawn(family: type[Family]) -> st.SearchStrategy[list[dict[str, float]]]:
    """Parameters of one to three kinds of client."""
    one = st.fixed_dictionaries({n: st.floats(*RANGES[n]) for n in parameters_of(family)})
    return st.lists(one, min_size=1, max_size=3)


def build(family: type[Family], kinds: list[dict[str, float]]) -> Family:
    return family(**{name: np.array([kind[name] for kind in kinds]) for name in kinds[0]})


def shape_of(latency: Latency) -> tuple[int, ...]:
    return latency.mean().shape


def bend_points(latency: Latency, start: float, end: float) -> Floats:
    """A subdivision between two times, fine where F rises and beyond every place where it bends."""
    bends = np.concatenate([[start], latency.breaks()])
    bends = bends[(bends >= start) & (bends < end)]
    steps = 0.5 ** np.arange(60)
    fine = np.ravel(bends[:, None] + (end - bends[:, None]) * steps)
    shares = np.concatenate([[1e-9, 1e-6, 1e-3], np.linspace(0.02, 0.98, 25), [0.999, 1 - 1e-6]])
    rise = np.ravel(latency.quantile(shares[:, None]))
    inside = rise[(rise > start) & (rise < end)]
    return np.unique(np.concatenate([bends, fine, inside, [end]]))


def integral(function: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Gauss-Legendre between neighbouring points, per kind of client."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(points) / 2
    at = points[:-1, None] + half[:, None] * (1 + nodes)
    values = function(at.reshape(-1, 1))
    return np.asarray((half[:, None] * weights).reshape(-1) @ values)


def test_every_latency_has_an_example_of_one_kind_and_of_several() -> None:
    assert set(discovered()) == set(EXAMPLES)
    for family, examples in EXAMPLES.items():
        kinds = [example.make().kinds for example in examples]
        assert min(kinds) == 1, family
        assert max(kinds) > 1, family
        assert all(type(example.make()) is family for example in examples)


@every_latency
def test_nobody_reports_before_the_broadcast_and_everybody_reports_in_the_end(
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
def test_cdf_is_a_growing_probability(example: Example, a: float, b: float) -> None:
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
def test_sf_keeps_its_digits_in_the_far_tail(example: Example) -> None:
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
        held = np.isfinite(latency.logsf(t))  # of a uniform, nothing is left after its end
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
def test_quantile_is_the_first_time_with_that_share(example: Example, u: float) -> None:
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
def test_samples_of_several_kinds_are_independent(example: Example) -> None:
    latency, draws = example.make(), 4000
    sample = latency.sample(np.random.default_rng(9), draws).reshape(draws, latency.kinds)
    sample = sample[:, sample.std(axis=0) > 0]
    for one, two in itertools.combinations(sample.T, 2):
        assert abs(np.corrcoef(one, two)[0, 1]) < 4.5 / np.sqrt(draws)


@every_latency
def test_samples_have_the_asked_shape_and_depend_on_the_seed_alone(example: Example) -> None:
    latency = example.make()
    for size, lead in ((), ()), (5, (5,)), ((2, 3), (2, 3)):
        one = latency.sample(np.random.default_rng(1), size)
        two = latency.sample(np.random.default_rng(1), size)
        assert one.shape == lead + shape_of(latency)
        np.testing.assert_array_equal(one, two)


@every_latency
@pytest.mark.parametrize("t", [0.3, 1.0, 2.2, 7.0, 40.0])
def test_mean_below_is_an_integral_of_the_cdf(example: Example, t: float) -> None:
    latency = example.make()
    area = integral(latency.cdf, bend_points(latency, 0.0, t))
    expected = t * np.ravel(latency.cdf(t)) - area
    np.testing.assert_allclose(np.ravel(latency.mean_below(t)), expected, rtol=1e-8, atol=1e-10)


@every_latency
@steady
@given(t=st.floats(0.0, 1e12))
def test_mean_below_is_at_most_t_for_each_who_reports(example: Example, t: float) -> None:
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
        area = integral(lambda t: np.exp(latency.logpdf(t)), bend_points(latency, start, end))
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
def test_a_slower_client_takes_as_many_times_longer(
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
def test_kinds_are_scaled_each_by_its_own_factor(example: Example) -> None:
    latency = example.make()
    factor = np.arange(2.0, 2.0 + latency.kinds)
    if isinstance(latency, Empirical) or (latency.kinds > 1 and not example.density):
        return  # one empirical distribution for all kinds: it says so, below
    scaled = latency.scaled(factor if shape_of(latency) else factor[0])
    np.testing.assert_allclose(scaled.mean(), factor.reshape(shape_of(latency)) * latency.mean())


def every_value(latency: Latency) -> list[Floats]:
    """All that a latency calculates, at many times and shares."""
    t, u = np.geomspace(0.01, 30.0, 40)[:, None], np.linspace(0.01, 0.99, 20)[:, None]
    at_times = [latency.cdf(t), latency.sf(t), latency.logsf(t), latency.mean_below(t)]
    return [*at_times, latency.quantile(u), latency.mean().reshape(1, -1)]


@every_latency
def test_take_gives_the_columns(example: Example) -> None:
    latency = example.make()
    index = np.sort(np.arange(2 * latency.kinds) % latency.kinds)[1:]
    taken = latency.take(index)
    assert taken.kinds == index.size
    for got, whole in zip(every_value(taken), every_value(latency), strict=True):
        columns = np.broadcast_to(whole, (len(whole), latency.kinds))[:, index]
        np.testing.assert_allclose(np.broadcast_to(got, columns.shape), columns, rtol=1e-13)


@every_latency
def test_kinds_are_what_each_is_alone(example: Example) -> None:
    latency = example.make()
    alone = [every_value(latency.take(np.array([kind]))) for kind in range(latency.kinds)]
    for together, *each in zip(every_value(latency), *alone, strict=True):
        np.testing.assert_allclose(together, np.concatenate(each, axis=-1), rtol=1e-13)


@pytest.mark.parametrize("family", parametric())
@steady
@given(data=st.data())
def test_array_parameters_are_a_loop_over_scalars(
    family: type[Family], data: st.DataObject
) -> None:
    kinds = data.draw(drawn(family))
    loop = [every_value(family(**kind)) for kind in kinds]
    for together, *each in zip(every_value(build(family, kinds)), *loop, strict=True):
        np.testing.assert_allclose(together, np.concatenate(each, axis=-1), rtol=1e-13)


@pytest.mark.parametrize("family", parametric())
@steady
@given(data=st.data(), u=shares, t=st.floats(1e-6, 1e6))
def test_drawn_parameters_keep_the_contract(
    family: type[Family], data: st.DataObject, u: float, t: float
) -> None:
    latency = build(family, data.draw(drawn(family)))
    cdf = latency.cdf(t)
    np.testing.assert_allclose(cdf + latency.sf(t), 1.0, rtol=0, atol=1e-14)
    assert np.all((cdf >= 0) & (cdf <= latency.cdf(1.5 * t)) & (cdf <= 1))
    first = latency.quantile(u)
    assert np.all(latency.cdf(first * (1 + 1e-9)) >= u * (1 - 1e-9) - 1e-12)
    assert np.all(latency.cdf(first * (1 - 1e-9)) < u + 1e-6)
    below = latency.mean_below(t)
    assert np.all((below >= 0) & (below <= t * cdf * (1 + 1e-9) + 1e-12))
    area = integral(latency.cdf, bend_points(latency, 0.0, t))
    np.testing.assert_allclose(below, t * cdf - area, rtol=1e-6, atol=1e-7 * t)


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


def test_zero_and_minus_zero_are_one_value() -> None:
    one, two = LogNormal(0.0, 1.0, 0.0), LogNormal(-0.0, 1.0, -0.0)
    assert one == two
    assert hash(one) == hash(two)


def test_parameters_are_copied() -> None:
    rates = np.array([1.0, 2.0])
    latency = Exponential(rates)
    rates[0] = 9.0
    assert latency == Exponential(np.array([1.0, 2.0]))


@pytest.mark.parametrize("family", parametric())
def test_bad_parameters_are_refused_by_name(family: type[Family]) -> None:
    names = parameters_of(family)
    good = {name: GOOD[name] for name in names}
    for name in names:
        bad: list[object] = [np.inf, np.nan, -np.inf, [], [[1.0]], "1.0", None, [1.0, np.nan]]
        bad += [] if name in MAY_BE_NEGATIVE else [-1.0, [1.0, -1.0]]
        bad += [] if name in MAY_BE_ZERO else [0.0, 0]
        for value in bad:
            with pytest.raises(InputError, match=f"{family.__name__}'s {name} must"):
                family(**{**good, name: value})
        if name in MAY_BE_ZERO:
            assert family(**{**good, name: 0.0})
    if len(names) > 1:
        lengths = dict(zip(names, [[1.0, 1.0], [2.0, 2.0, 2.0]], strict=False))
        with pytest.raises(InputError, match="one length"):
            family(**{**good, **lengths})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Uniform(2.0, 1.0), "high must be above its low"),
        (lambda: Uniform(np.array([0.0, 2.0]), 2.0), "high must be above its low"),
        (lambda: Empirical([]), "times must"),
        (lambda: Empirical([1.0, 0.0]), "times must"),
        (lambda: Empirical([1.0, np.inf]), "times must"),
        (lambda: Empirical([[1.0], [2.0]]), "times must"),
        (lambda: Empirical(["1.0"]), "times must"),
        (lambda: Empirical([1.0, 2.0], [1.0]), "weights must"),
        (lambda: Empirical([1.0, 2.0], [1.0, 0.0]), "weights must"),
        (lambda: Empirical([1.0, 2.0], [1.0, np.nan]), "weights must"),
        (lambda: Empirical([1.0, 2.0], ["1", "2"]), "weights must"),
        (lambda: Empirical([1.0], kinds=0), "kinds must"),
        (
            lambda: Empirical([1.0], kinds=2).scaled(np.array([1.0, 2.0])),
            "factor must be one number",
        ),
        (lambda: Mixture([], []), "one weight per component"),
        (lambda: Mixture([Exponential(1.0)], [1.0, 2.0]), "one weight per component"),
        (lambda: Mixture([Exponential(1.0)], [0.0]), "weights must"),
        (lambda: Mixture([Exponential(1.0)], [np.nan]), "weights must"),
        (lambda: Mixture([Exponential(1.0)], wrong(["1"])), "weights must"),
        (lambda: Mixture(wrong([1.0]), [1.0]), "components must"),
        (
            lambda: Mixture([Exponential(np.ones(2)), Exponential(np.ones(3))], [1, 1]),
            "components must",
        ),
        (lambda: Various([]), "parts must"),
        (lambda: Various(wrong([1.0])), "parts must"),
        (lambda: Various([Exponential(np.ones(3))]).take(np.array([1, 0])), "increasing order"),
        (lambda: Various([Exponential(np.ones(3))]).take(np.array([0, 3])), "from 0 to 2"),
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
