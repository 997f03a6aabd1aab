from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.federation import Federation
from cafe.latency import Exponential, Uniform
from cafe.theory import Setting, age_as_printed, age_by_kind

if TYPE_CHECKING:
    from tests.support.theory_oracles import Game

steady = settings(derandomize=True, deadline=None, max_examples=100, database=None)


@pytest.mark.slow
def test_age_of_every_client(game: Game) -> None:
    """The age, integrated over continuous time for each client, is the expected one."""
    played, found = game.played, game.expected
    never = found.participation_by_client == 0
    np.testing.assert_array_equal(np.isinf(found.age_by_client), never)
    assert not played.used[:, never].any()
    used = ~never
    length = np.repeat(played.length[:, None], used.sum(), axis=1)
    game.agree(found.age_by_client[used], played.age_area[:, used], length)
    if not never.any():
        since = ~np.isnan(played.age_area).any(axis=1)
        area = np.where(since, played.age_area.mean(axis=1), np.nan)
        game.agree(found.age, area, played.length)
        assert found.age == pytest.approx(found.age_by_client.mean(), rel=1e-12)
    assert found.worst_age == found.age_by_client.max()
    assert found.normalised_age == found.age / game.deadline


def test_correlation_of_length_and_use_cancels() -> None:
    """Early rounds favour the fast: E[Y | used] differs from E[Y], yet only E[Y] enters the age."""
    rates = np.array([0.2, 1.0, 1.0, 4.0])
    federation = Federation.exponential(rates)
    setting = Setting(federation, 1, 1.5, 2)
    times = federation.sample(np.random.default_rng(3), 200_000)
    length = np.minimum(np.sort(times, axis=1)[:, 1], 1.5)
    used = times <= length[:, None]
    given_used = (length[:, None] * used).sum(axis=0) / used.sum(axis=0)
    # The correlation is real: a round in which the slow client is used is shorter on average.
    assert given_used[0] < 0.9 * length.mean()
    # The renewal argument with the correlation: a used round, then unused rounds until the next.
    r = used.mean(axis=0)
    unused = (length[:, None] * ~used).sum(axis=0) / (~used).sum(axis=0)
    at_start = given_used + unused * (1 - r) / r
    kept = at_start + (length**2).mean() / (2 * length.mean())
    np.testing.assert_allclose(age_by_kind(setting), kept, rtol=0.03)


@steady
@given(st.integers(1, 120), st.floats(0.1, 10.0), st.floats(0.01, 4.0), st.floats(0, 1))
def test_theorem_2_is_exact(clients: int, rate: float, report: float, place: float) -> None:
    quorum = 1 + round(place * (clients - 1))
    setting = Setting(Federation(clients, Exponential(rate)), quorum, report / rate)
    if setting.turnout.success > 1e-250:
        printed = age_as_printed(clients, rate, quorum, report / rate)
        assert printed == pytest.approx(float(age_by_kind(setting)[0]), rel=1e-9)


@pytest.mark.parametrize(
    ("clients", "quorum", "deadline", "wanted"),
    [(100, 33, 0.5, 1.603447), (10, 9, 1.0, 16.238744), (100, 1, 0.5, 0.25 + 0.5 / 0.3934693)],
)
def test_known_values(clients: int, quorum: int, deadline: float, wanted: float) -> None:
    setting = Setting(Federation(clients, Exponential(1.0)), quorum, deadline)
    assert age_as_printed(clients, 1.0, quorum, deadline) == pytest.approx(wanted, rel=1e-6)
    assert float(age_by_kind(setting)[0]) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("target", [None, 12])
def test_corollary_2(target: int | None) -> None:
    """A larger quorum makes every client older, equal or not."""
    rates = np.random.default_rng(1).lognormal(0.0, 1.0, 12)
    for federation in (Federation(12, Exponential(1.0)), Federation.exponential(rates)):
        ages = np.array(
            [age_by_kind(Setting(federation, quorum, 0.8, target)) for quorum in range(1, 13)]
        )
        assert np.all(np.diff(ages, axis=0) >= -1e-12 * ages[1:])


def test_closing_early_lowers_the_age() -> None:
    """At the paper's own optimum, 50 clients and T = 8.52, all clients report long before T."""
    federation = Federation(50, Exponential(1.0))
    wait = age_by_kind(Setting(federation, 1, 8.52))[0]
    close = age_by_kind(Setting(federation, 1, 8.52, 50))[0]
    assert close < 0.6 * wait


def test_age_of_a_client_that_is_never_used_is_infinite() -> None:
    federation = Federation(3, Uniform(np.array([0.1, 0.1, 5.0]), np.array([1.0, 1.0, 6.0])))
    assert np.all(age_by_kind(Setting(federation, 3, 0.5)) == np.inf)
    ages = age_by_kind(Setting(federation, 2, 0.5))
    assert np.all(np.isfinite(ages[:2]))
    assert ages[2] == np.inf


@pytest.mark.parametrize("quorum", [1, 2, 3])
@pytest.mark.parametrize("target", [None, 3])
def test_age_is_never_minus_infinity(quorum: int, target: int | None) -> None:
    """A probability of -0.0 would give the age -inf, which would count as the best."""
    setting = Setting(Federation(3, Uniform(2.0, 3.0)), quorum, 1.0, target)
    assert np.all(age_by_kind(setting) == np.inf)
    assert age_as_printed(1000, 1.0, 1000, 1e-5) == np.inf


def test_underflowing_probabilities_give_infinite_ages() -> None:
    federation = Federation(5, Exponential(1e-62))
    assert np.all(age_by_kind(Setting(federation, 5, 1.0)) == np.inf)
