"""Parametric families: their parameters are checked, copied and broadcast."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.errors import InputError
from cafe.latency import (
    Exponential,
    LogNormal,
)
from cafe.latency.base import Family
from tests.support.latencies import (
    EXAMPLES,
    every_value,
    integral,
    integration_points,
    shares,
    steady,
)

# A value of every parameter that all families accept.
GOOD = {"rate": 1.0, "shift": 0.5, "shape": 2.0, "scale": 1.0, "mu": 0.0, "sigma": 1.0}
GOOD |= {"low": 1.0, "high": 2.0, "value": 1.0}


MAY_BE_ZERO = {"shift", "low", "mu"}


MAY_BE_NEGATIVE = {"mu"}


# Where drawn parameters lie: wide, but with moments that doubles can hold.
RANGES = {"rate": (1e-3, 1e3), "shift": (0.0, 100.0), "shape": (0.3, 30.0), "scale": (1e-3, 1e3)}
RANGES |= {"mu": (-5.0, 5.0), "sigma": (0.05, 2.5), "low": (0.0, 10.0), "high": (10.5, 99.0)}
RANGES |= {"value": (1e-3, 1e3)}


def parametric() -> list[type[Family]]:
    return [family for family in EXAMPLES if issubclass(family, Family)]


def parameters_of(family: type[Family]) -> list[str]:
    return [field.name for field in dataclasses.fields(family)]  # type: ignore[arg-type]


def drawn(family: type[Family]) -> st.SearchStrategy[list[dict[str, float]]]:
    """Parameters of one to three kinds of client."""
    one = st.fixed_dictionaries({n: st.floats(*RANGES[n]) for n in parameters_of(family)})
    return st.lists(one, min_size=1, max_size=3)


def build(family: type[Family], kinds: list[dict[str, float]]) -> Family:
    return family(**{name: np.array([kind[name] for kind in kinds]) for name in kinds[0]})


@pytest.mark.parametrize("family", parametric())
@steady
@given(data=st.data())
def test_array_parameters_equal_a_loop_over_scalars(
    family: type[Family], data: st.DataObject
) -> None:
    kinds = data.draw(drawn(family))
    loop = [every_value(family(**kind)) for kind in kinds]
    for together, *each in zip(every_value(build(family, kinds)), *loop, strict=True):
        np.testing.assert_allclose(together, np.concatenate(each, axis=-1), rtol=1e-13)


@pytest.mark.parametrize("family", parametric())
@steady
@given(data=st.data(), u=shares, t=st.floats(1e-6, 1e6))
def test_random_parameters_satisfy_the_contract(
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
    area = integral(latency.cdf, integration_points(latency, 0.0, t))
    np.testing.assert_allclose(below, t * cdf - area, rtol=1e-6, atol=1e-7 * t)


def test_zero_and_minus_zero_are_equal() -> None:
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
