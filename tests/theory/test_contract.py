"""Properties of every expected quantity: units, order of clients, limits, and grouping into kinds.

A new scalar of :class:`cafe.theory.Expectation` must be given a unit here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.federation import Federation
from cafe.latency import Exponential, Gamma, LogNormal, Uniform, Weibull
from cafe.latency.base import Floats
from cafe.theory import Expectation, expect
from cafe.theory.expect import SCALARS

TIMES = {
    "deadline",
    "waste",
    "processing_waste",
    "age",
    "worst_age",
    "round_duration",
    "update_interval",
    "client_seconds",
    "waste_per_round",
    "waste_per_gradient",
    "processing_waste_per_round",
    "processing_waste_per_gradient",
    "absent_waste",
    "agu_waste",
    "agu_waste_union",
}
NUMBERS = {
    "quorum",
    "broadcasts",
    "messages",
    "normalised_age",
    "success_probability",
    "expected_reports",
    "reports_per_update",
    "waste_per_time",  # clients
    "processing_waste_per_time",
    "everybody_probability",
    "mean_share",
    "bias",
    "merit",
    "noise_factor",
    "sampling_factor",
}
BY_CLIENT = ("participation_by_client", "share_by_client", "age_by_client")


def equal() -> Federation:
    return Federation(9, Exponential(0.8))


def unequal() -> Federation:
    rates = np.random.default_rng(1).lognormal(0.0, 0.8, 9)
    return Federation.exponential(rates, np.linspace(0.5, 1.0, 9))


def groups() -> Federation:
    return Federation.join(
        Federation(3, Weibull(0.7, 1.5)),
        Federation(2, LogNormal(0.0, 1.0), availability=0.8),
        Federation(3, Gamma(2.0, 0.5)),
        Federation(1, Uniform(0.2, 2.0)),
    )


every_federation = pytest.mark.parametrize("make", [equal, unequal, groups])
every_target = pytest.mark.parametrize("target", [None, 9, 6, 4])
Make = Callable[[], Federation]


def same(
    found: Expectation,
    wanted: Expectation,
    *,
    time: float = 1.0,
    order: Floats | None = None,
    rtol: float = 1e-9,
) -> None:
    """All scalars and all figures by client agree, with time in another unit, clients in order."""
    ours, theirs = found.to_dict(), wanted.to_dict()
    for name in SCALARS:
        a, b = ours[name], theirs[name]
        assert (a is None) == (b is None), name
        if a is not None and b is not None:
            unit = time if name in TIMES else 1.0
            # The bias of equal clients is 0 up to rounding.
            assert a == pytest.approx(b * unit, rel=rtol, abs=1e-13 * unit), name
    for name in BY_CLIENT:
        values = getattr(wanted, name) * (time if name == "age_by_client" else 1.0)
        if order is not None:
            values = values[order.astype(int)]
        np.testing.assert_allclose(getattr(found, name), values, rtol=rtol, err_msg=name)


def test_every_scalar_has_a_unit() -> None:
    assert set(SCALARS) == TIMES | NUMBERS
    assert not TIMES & NUMBERS


@every_federation
@every_target
@pytest.mark.parametrize("scale", [1e-4, 1e7])
@pytest.mark.slow
def test_time_unit_does_not_matter(make: Make, target: int | None, scale: float) -> None:
    federation = make()
    base = expect(federation, quorum=4, deadline=0.9, target=target)
    other = expect(federation.scaled(scale), quorum=4, deadline=0.9 * scale, target=target)
    same(other, base, time=scale)


@every_target
def test_order_of_clients_does_not_matter(target: int | None) -> None:
    rates = np.random.default_rng(1).lognormal(0.0, 0.8, 9)
    share = np.linspace(0.5, 1.0, 9)
    order = np.random.default_rng(2).permutation(9)
    base = expect(Federation.exponential(rates, share), quorum=4, deadline=0.9, target=target)
    moved = Federation.exponential(rates[order], share[order])
    same(expect(moved, quorum=4, deadline=0.9, target=target), base, order=order.astype(float))


@every_target
def test_equal_clients_may_share_a_kind(target: int | None) -> None:
    rates = np.array([0.5, 0.5, 0.5, 1.2, 1.2, 3.0, 3.0, 3.0, 3.0])
    each = expect(Federation.exponential(rates), quorum=4, deadline=0.9, target=target)
    kinds = Federation(
        9, Exponential(np.array([0.5, 1.2, 3.0])), kind=np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    )
    same(expect(kinds, quorum=4, deadline=0.9, target=target), each)
    one = expect(equal(), quorum=4, deadline=0.9, target=target)
    nine = expect(Federation.exponential(np.full(9, 0.8)), quorum=4, deadline=0.9, target=target)
    same(nine, one)


@every_federation
@every_target
@pytest.mark.parametrize("deadline", [0.1, 4.0])
@pytest.mark.slow
def test_inequalities_between_quantities(make: Make, target: int | None, deadline: float) -> None:
    for quorum in (1, 4):
        found = expect(make(), quorum=quorum, deadline=deadline, target=target)
        assert all(value is None or value >= 0 for value in found.to_dict().values())
        assert found.processing_waste <= found.waste * (1 + 1e-12)
        assert found.waste <= found.setting.clients * found.update_interval * (1 + 1e-12)
        # All the work is done within a round, by at most all clients.
        assert found.client_seconds <= found.setting.clients * found.update_interval * (1 + 1e-9)
        assert found.processing_waste <= found.client_seconds * (1 + 1e-9)
        assert found.round_duration <= deadline * (1 + 1e-12)
        assert quorum <= found.reports_per_update * (1 + 1e-9)
        assert found.reports_per_update <= (target or 9) * (1 + 1e-9)
        assert found.worst_age >= found.age * (1 - 1e-12)
        assert found.age >= 1.5 * found.round_duration * (1 - 1e-12)
        assert found.noise_factor >= found.success_probability / 9 * (1 - 1e-9)
        assert found.noise_factor <= found.success_probability / quorum * (1 + 1e-9)
        if found.agu_waste is not None and found.agu_waste_union is not None and target is None:
            assert found.agu_waste_union <= found.agu_waste * (1 + 1e-12)
            assert found.agu_waste <= found.waste * (1 + 1e-12)


@pytest.mark.parametrize("quorum", [1, 5, 9])
def test_a_long_deadline(quorum: int) -> None:
    """All clients report: no round fails, no client is favoured, rounds last until the deadline."""
    found = expect(equal(), quorum=quorum, deadline=1000.0)
    assert found.success_probability == 1.0
    assert found.broadcasts == 1.0
    assert found.waste == pytest.approx(0.0, abs=1e-300)
    assert found.processing_waste == pytest.approx(0.0, abs=1e-300)
    assert found.agu_waste == pytest.approx(0.0, abs=1e-300)
    assert found.age == pytest.approx(1500.0)
    assert found.expected_reports == found.reports_per_update == 9.0
    assert found.noise_factor == pytest.approx(1 / 9, rel=1e-14)
    assert found.client_seconds == pytest.approx(9 / 0.8, rel=1e-12)
    np.testing.assert_allclose(found.share_by_client, 1 / 9, rtol=1e-13)
    early = expect(equal(), quorum=quorum, deadline=1000.0, target=9)
    assert early.round_duration == pytest.approx(sum(1 / k for k in range(1, 10)) / 0.8, rel=1e-10)


@pytest.mark.parametrize("quorum", [1, 3])
def test_a_short_deadline(quorum: int) -> None:
    """At M = 1: a share N p of the rounds has a report, from a single client."""
    short = 1e-7
    found = expect(equal(), quorum=quorum, deadline=short)
    p = 0.8 * short
    wanted = {1: 9 * p, 3: 84 * p**3}[quorum]
    assert found.success_probability == pytest.approx(wanted, rel=1e-5)
    assert found.reports_per_update == pytest.approx(quorum, rel=1e-5)
    assert found.noise_factor == pytest.approx(wanted / quorum, rel=1e-5)
    if quorum == 1:
        assert found.age == pytest.approx(1 / 0.8, rel=1e-5)  # the infimum of the age over T
        assert found.waste == pytest.approx(1 / 0.8, rel=1e-5)  # N T / (N p)


@pytest.mark.parametrize("target", [None, 5, 3])
@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_no_round_can_succeed(quorum: int, target: int | None) -> None:
    """Infinite values, not errors or warnings, and never -inf, which would count as the best."""
    found = expect(Federation(5, Uniform(2.0, 3.0)), quorum=quorum, deadline=1.0, target=target)
    assert found.success_probability == 0.0
    for name in ("waste", "processing_waste", "broadcasts", "age", "worst_age", "normalised_age",
                 "update_interval", "client_seconds", "waste_per_gradient"):  # fmt: skip
        assert getattr(found, name) == np.inf, name
    assert found.round_duration == 1.0
    assert found.waste_per_round == found.processing_waste_per_round == 5.0
    assert np.isnan(found.bias)
    if target is None:
        assert found.agu_waste == found.agu_waste_union == np.inf
    assert np.all(found.age_by_client == np.inf)
    assert np.all(found.share_by_client == 0)


@pytest.mark.parametrize("rate", [1e-60, 1e-62, 1e-64, 1e-100])
@pytest.mark.parametrize("target", [None, 5])
def test_success_is_nearly_impossible(rate: float, target: int | None) -> None:
    """Even if probabilities underflow to 0, there is no warning."""
    found = expect(Federation(5, Exponential(rate)), quorum=5, deadline=1.0, target=target)
    assert found.broadcasts >= 1e299
    assert found.age >= 1e299
    assert found.waste >= 1e299
    assert all(value is None or not value < 0 for value in found.to_dict().values())
