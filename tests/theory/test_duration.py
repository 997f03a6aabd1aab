from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import digamma, zeta

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import (
    Constant,
    Empirical,
    Exponential,
    LogNormal,
    Mixture,
    ShiftedExponential,
    Uniform,
    Weibull,
)
from cafe.latency.base import Floats
from cafe.theory import Setting, expect
from cafe.theory.duration import early_close, overtaken_probability

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from tests.support.theory_oracles import Game


def test_moments_agree_with_simulation(game: Game) -> None:
    played, duration = game.played, game.expected.setting.duration
    game.agree(duration.mean, played.length)
    game.agree(duration.second, played.length**2)
    if game.target is not None:
        game.agree(duration.mean_when_full, played.length * played.full)
    game.agree(game.expected.setting.work, played.work)


def test_participation_agrees_with_simulation(game: Game) -> None:
    setting = game.expected.setting
    game.agree(game.federation.by_client(setting.participation), game.played.used)
    game.agree(setting.used, game.played.used.sum(axis=1))


def harmonic(n: int) -> float:
    return float(digamma(n + 1) + np.euler_gamma)


@pytest.mark.parametrize(
    ("clients", "deadline"),
    [(1, 1e3), (10, 1e3), (10, 1e14), (10, 1e60), (1000, 1e3), (1000, 1e14), (100_000, 1e3)],
)
def test_without_a_deadline_it_is_the_order_statistic(clients: int, deadline: float) -> None:
    """The K-th of N exponential times; a deadline that is never reached has no effect."""
    for target in {clients, (clients + 1) // 2}:
        federation = Federation(clients, Exponential(2.0))
        duration, work = early_close(federation, target, deadline)
        left = clients - target
        mean = (harmonic(clients) - harmonic(left)) / 2
        variance = float(zeta(2, left + 1) - zeta(2, clients + 1)) / 4
        assert duration.mean == pytest.approx(mean, rel=1e-9)
        assert duration.second == pytest.approx(variance + mean**2, rel=1e-9)
        assert duration.mean_when_full == pytest.approx(mean, rel=1e-9)
        # Memoryless: each report costs 1 / rate of client time on average.
        assert work == pytest.approx(target / 2, rel=1e-9)


def by_quadrature(open_at: Callable[[float], float], edges: Floats) -> tuple[float, float]:
    """Integrals of a function that is smooth between the edges, and of it times 2t."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    mean = second = 0.0
    for low, high in pairwise(edges):
        for x, w in zip(nodes, weights, strict=True):
            t = 0.5 * (low + high) + 0.5 * (high - low) * x
            part = 0.5 * (high - low) * w * open_at(t)
            mean, second = mean + part, second + 2 * t * part
    return mean, second


def observed(count: int) -> Empirical:
    return Empirical(np.random.default_rng(0).exponential(0.05, count))


MANY_BREAKS = {
    "observed beside memoryless": Federation.join(
        Federation(5, observed(200)), Federation(5, Exponential(0.2))
    ),
    "now observed, now memoryless": Federation(
        8, Mixture([observed(300), Exponential(0.3)], [0.5, 0.5])
    ),
    "many shifts": Federation(150, ShiftedExponential(np.linspace(0.1, 4.0, 150), 0.8)),
    "many intervals": Federation(120, Uniform(np.linspace(0.1, 1, 120), np.linspace(2, 20, 120))),
    "many constants": Federation(150, Constant(np.linspace(0.5, 3.0, 150))),
    "few breaks": Federation(3, Uniform(np.array([0.5, 0.5, 3.0]), np.array([1.0, 6.0, 9.0]))),
    "one jump": Federation(4, Constant(1.7), availability=0.5),
    "heavy tail": Federation(20, LogNormal(0.0, 2.0)),
    "steep start": Federation(20, Weibull(0.3, 1.0)),
}


@pytest.mark.parametrize("name", MANY_BREAKS)
@pytest.mark.parametrize("everybody", [True, False])
def test_latencies_with_breaks(name: str, everybody: bool) -> None:
    """Waiting for all: Pr(open at t) = 1 - prod F; for the first: prod (1 - F)."""
    federation, deadline = MANY_BREAKS[name], 25.0
    target = federation.clients if everybody else 1
    breaks = federation.latency.breaks()
    edges = np.concatenate([[0.0], np.geomspace(1e-9, deadline, 150), breaks[breaks < deadline]])

    def open_at(t: float) -> float:
        if everybody:
            return float(1 - np.prod(federation.report(t) ** federation.number))
        return float(np.prod(federation.miss(t) ** federation.number))

    mean, second = by_quadrature(open_at, np.unique(edges))
    duration, _ = early_close(federation, target, deadline)
    assert duration.mean == pytest.approx(mean, rel=1e-6)
    assert duration.second == pytest.approx(second, rel=1e-6)


def test_very_many_breaks() -> None:
    latency = observed(3000)
    times = np.sort(np.asarray(latency.times))
    # The largest of 20 draws: each observed value's chance to be it.
    chance = np.diff(np.concatenate([[0.0], (np.arange(1, 3001) / 3000) ** 20]))
    duration, _ = early_close(Federation(20, latency), 20, 10.0)
    assert duration.mean == pytest.approx(float(times @ chance), rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_constant_times_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.uniform(0.1, 5.0, 7))
    for target in (1, 4, 7):
        duration, work = early_close(Federation(7, Constant(values)), target, 50.0 * rng.random())
        closes = float(values[target - 1])
        if duration.mean_when_full:
            assert duration.mean == pytest.approx(closes, rel=1e-12)
            assert duration.second == pytest.approx(closes**2, rel=1e-12)
            assert work == pytest.approx(np.minimum(values, closes).sum(), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e9])
def test_time_unit_does_not_matter(scale: float) -> None:
    for latency in (LogNormal(0.0, 2.0), Weibull(0.4, 1.0), Exponential(1.0)):
        base, work = early_close(Federation(30, latency), 30, 1e4)
        other, more = early_close(Federation(30, latency.scaled(scale)), 30, 1e4 * scale)
        assert other.mean == pytest.approx(scale * base.mean, rel=1e-10)
        assert other.second == pytest.approx(scale**2 * base.second, rel=1e-10)
        assert more == pytest.approx(scale * work, rel=1e-10)


def test_unreachable_target_waits_for_the_deadline() -> None:
    duration, work = early_close(Federation(4, Uniform(2.0, 3.0)), 2, 1.5)
    assert (duration.mean, duration.second, duration.mean_when_full) == (1.5, 2.25, 0.0)
    assert work == 6.0


def test_overtaken_probabilities_sum_to_the_expected_surplus() -> None:
    """Beyond the target, n - K reports come too late: sum_k Pr(k is late) = E[(n - K)^+]."""
    federation = Federation.join(
        Federation(4, Exponential(1.0)),
        Federation(3, Weibull(0.6, 2.0), availability=0.7),
        Federation(3, Uniform(0.1, 1.0)),
    )
    for target, deadline in ((2, 0.4), (5, 0.8), (9, 3.0)):
        late = overtaken_probability(federation, target, deadline)
        full = Setting(federation, target, deadline).turnout
        beyond = full.used - target * full.success
        assert float(federation.number @ late) == pytest.approx(beyond, rel=1e-8)


def test_slow_clients_are_overtaken_long_after_the_round_has_closed() -> None:
    """A round closes within seconds; almost all slow clients report in the hours after it."""
    federation = Federation.join(
        Federation(30, Exponential(1.0)), Federation(10, ShiftedExponential(30.0, 0.01))
    )
    fast, slow = overtaken_probability(federation, 5, 200.0)
    assert slow == pytest.approx(1 - np.exp(-1.7), rel=1e-9)
    assert fast == pytest.approx(25 / 30, rel=1e-9)


def test_overtaken_probability_of_equal_clients_as_different_kinds() -> None:
    """Kinds with the same latency: the integral must agree with the symmetric shortcut."""
    one, two = Federation(6, Exponential(1.3)), Federation(6, Exponential(np.full(6, 1.3)))
    for target in (2, 4, 5):
        alike = Setting(one, 2, 0.9, target).participation
        apart = Setting(two, 2, 0.9, target).participation
        np.testing.assert_allclose(apart, np.full(6, alike[0]), rtol=1e-9)


def test_target_with_unequal_clients_needs_a_density() -> None:
    federation = Federation(4, Constant(np.array([1.0, 2.0, 3.0, 4.0])))
    with pytest.raises(InputError, match="density"):
        _ = expect(federation, quorum=1, deadline=5.0, target=2).age
    equal = expect(Federation(4, Constant(1.0)), quorum=1, deadline=5.0, target=2)
    assert equal.participation_by_client == pytest.approx(0.5)
