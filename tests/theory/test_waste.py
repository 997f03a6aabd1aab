from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential, Uniform
from cafe.theory import (
    Setting,
    absent_waste_per_round,
    agu_waste_per_update,
    expect,
    processing_waste_per_round,
    waste_as_printed,
    waste_per_round,
)

if TYPE_CHECKING:
    from tests.support.theory_oracles import Game

steady = settings(derandomize=True, deadline=None, max_examples=100, database=None)


def equal(clients: int, rate: float, quorum: int, deadline: float) -> Setting:
    return Setting(Federation(clients, Exponential(rate)), quorum, deadline)


def unequal(quorum: int, deadline: float) -> Setting:
    rates = np.random.default_rng(1).lognormal(0.0, 1.0, 12)
    share = np.random.default_rng(2).uniform(0.4, 1.0, 12)
    return Setting(Federation.exponential(rates, share), quorum, deadline)


def test_waste_agrees_with_simulation(game: Game) -> None:
    played, found = game.played, game.expected
    game.agree(found.waste_per_round, played.waste)
    game.agree(found.waste, played.waste, played.success)
    game.agree(found.waste_per_gradient, played.waste, played.used.sum(axis=1))
    game.agree(found.waste_per_time, played.waste, played.length)


def test_processing_waste(game: Game) -> None:
    played, found = game.played, game.expected
    game.agree(found.processing_waste_per_round, played.processing_waste)
    game.agree(found.processing_waste, played.processing_waste, played.success)
    game.agree(
        found.processing_waste_per_gradient, played.processing_waste, played.used.sum(axis=1)
    )
    game.agree(found.processing_waste_per_time, played.processing_waste, played.length)


def test_absent_waste(game: Game) -> None:
    if game.target is not None and game.target < game.invited:
        assert game.expected.absent_waste is None
        assert absent_waste_per_round(game.expected.setting) is None
    else:
        assert game.expected.absent_waste is not None
        game.agree(game.expected.absent_waste, game.played.absent_waste, game.played.success)


def test_aggregated_gradients(paper_game: Game) -> None:
    """Both readings of which gradients of failed rounds are used (Sec. 7.2)."""
    played, found = paper_game.played, paper_game.expected
    assert found.agu_waste is not None
    assert found.agu_waste_union is not None
    paper_game.agree(found.agu_waste, played.agu_round, played.success)
    paper_game.agree(found.agu_waste_union, played.agu_union, played.success)


def test_aggregated_gradients_have_no_early_close() -> None:
    federation = Federation(5, Exponential(1.0))
    assert expect(federation, quorum=2, deadline=1.0, target=4).agu_waste is None
    assert expect(federation, quorum=2, deadline=1.0, target=4).agu_waste_union is None


@steady
@given(
    st.integers(1, 120),
    st.floats(0.1, 10.0),
    st.floats(0.01, 4.0),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_theorem_1_is_exact(
    clients: int, rate: float, report: float, low: float, high: float
) -> None:
    """The printed formula equals the general form, for any quorum that rounds can reach."""
    deadline = report / rate
    quorum = 1 + round(low * high * (clients - 1))
    setting = equal(clients, rate, quorum, deadline)
    if setting.turnout.success > 1e-250:
        found = waste_per_round(setting) / setting.turnout.success
        assert waste_as_printed(clients, rate, quorum, deadline) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(
    ("clients", "quorum", "deadline", "waste"),
    [(100, 33, 0.5, 34.24267), (10, 9, 1.0, 134.80988), (100, 39, 0.5, 66.97)],
)
def test_known_values(clients: int, quorum: int, deadline: float, waste: float) -> None:
    assert waste_as_printed(clients, 1.0, quorum, deadline) == pytest.approx(waste, rel=1e-4)
    setting = equal(clients, 1.0, quorum, deadline)
    assert waste_per_round(setting) / setting.turnout.success == pytest.approx(waste, rel=1e-4)


def test_known_processing_waste() -> None:
    setting = equal(10, 1.0, 9, 1.0)
    found = processing_waste_per_round(setting) / setting.turnout.success
    assert found == pytest.approx(87.17, abs=0.005)
    setting = equal(100, 1.0, 39, 0.5)
    found = processing_waste_per_round(setting) / setting.turnout.success
    assert found == pytest.approx(59.72, abs=0.005)


def test_known_waste_of_aggregated_gradients() -> None:
    setting = equal(100, 1.0, 35, 0.3)
    assert waste_as_printed(100, 1.0, 35, 0.3) == pytest.approx(1071, abs=0.5)
    assert agu_waste_per_update(setting) == pytest.approx(973, abs=0.5)
    assert agu_waste_per_update(setting, "union") == pytest.approx(802, abs=0.5)


@pytest.mark.parametrize("deadline", [0.05, 0.4, 2.0])
def test_corollary_1(deadline: float) -> None:
    """At a fixed deadline waste never falls with the quorum: per update, and per gradient."""
    for federation in (Federation(12, Exponential(1.0)), unequal(1, deadline).federation):
        settings = [Setting(federation, quorum, deadline) for quorum in range(1, 13)]
        per_round = np.array([waste_per_round(setting) for setting in settings])
        per_update = per_round / [setting.turnout.success for setting in settings]
        per_gradient = per_round / [setting.used for setting in settings]
        for waste in (per_round, per_update, per_gradient):
            assert np.all(np.diff(waste) >= -1e-12 * waste[1:])


@pytest.mark.parametrize("deadline", [0.05, 0.4, 2.0])
@pytest.mark.parametrize("target", [None, 12])
def test_processing_waste_is_smaller(deadline: float, target: int | None) -> None:
    for quorum in range(1, 13):
        rules = unequal(quorum, deadline)
        setting = Setting(rules.federation, quorum, deadline, target)
        true, charged = processing_waste_per_round(setting), waste_per_round(setting)
        if quorum == 1:  # no report is discarded
            assert true == charged
        else:
            assert true < charged


@pytest.mark.parametrize("target", [None, 4, 7, 12])
def test_work_is_waste_plus_useful_time(target: int | None) -> None:
    """Client-seconds = processing waste + E[X; used]; the latter by rounds of equal clients."""
    federation = Federation(12, Exponential(1.0))
    setting = Setting(federation, 3, 0.7, target)
    times = federation.sample(np.random.default_rng(0), 100_000)
    ordered = np.sort(times, axis=1)[:, : target or 12]
    useful = np.where(ordered <= 0.7, ordered, 0.0).sum(axis=1)
    useful *= (ordered <= 0.7).sum(axis=1) >= 3
    error = useful.std() / len(useful) ** 0.5
    assert abs(setting.work - processing_waste_per_round(setting) - useful.mean()) < 4.5 * error


def test_without_a_target_useful_time_has_a_closed_form() -> None:
    setting = unequal(5, 0.6)
    useful = setting.number @ (setting.reported_time * setting.turnout.others_suffice)
    found = setting.work - processing_waste_per_round(setting)
    assert found == pytest.approx(float(useful), rel=1e-12)


def test_as_printed_with_rare_success() -> None:
    """1 - q is summed directly, because q rounds to 1."""
    for clients, quorum, deadline in ((100, 40, 0.1), (100, 60, 0.1), (100, 100, 0.01)):
        setting = equal(clients, 1.0, quorum, deadline)
        found = waste_per_round(setting) / setting.turnout.success
        assert found > 1e14
        assert waste_as_printed(clients, 1.0, quorum, deadline) == pytest.approx(found, rel=1e-9)
    assert waste_as_printed(1000, 1.0, 1000, 1e-5) == np.inf


def test_without_success_waste_is_infinite() -> None:
    setting = Setting(Federation(3, Uniform(2.0, 3.0)), 2, 1.0)
    assert agu_waste_per_update(setting) == np.inf
    assert agu_waste_per_update(setting, "union") == np.inf
    assert waste_per_round(setting) == 3.0


def test_an_unknown_pool_is_named() -> None:
    with pytest.raises(InputError, match=r"onion.*union"):
        agu_waste_per_update(unequal(2, 1.0), "onion")  # type: ignore[arg-type]
