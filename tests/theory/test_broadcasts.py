from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.federation import Federation
from cafe.latency import Exponential, Uniform
from cafe.theory import Turnout, broadcasts, broadcasts_as_printed

if TYPE_CHECKING:
    from tests.support.theory_oracles import Game

steady = settings(derandomize=True, deadline=None, max_examples=100, database=None)


@pytest.mark.slow
def test_broadcasts(game: Game) -> None:
    played, found = game.played, game.expected
    game.agree(found.broadcasts, game.ones, played.success)
    game.agree(found.update_interval, played.length, played.success)
    game.agree(found.reports_per_update, played.used.sum(axis=1), played.success)
    game.agree(found.broadcasts / found.reports_per_update, game.ones, played.used.sum(axis=1))


@steady
@given(st.integers(1, 120), st.floats(0.1, 10.0), st.floats(0.01, 4.0), st.floats(0, 1))
def test_as_printed_is_exact(clients: int, rate: float, report: float, place: float) -> None:
    quorum = 1 + round(place * (clients - 1))
    turnout = Turnout.of(Federation(clients, Exponential(rate)), quorum, report / rate)
    if turnout.success > 1e-250:
        printed = broadcasts_as_printed(clients, rate, quorum, report / rate)
        assert printed == pytest.approx(broadcasts(turnout), rel=1e-9)


@pytest.mark.parametrize(
    ("clients", "quorum", "deadline", "wanted"),
    [(100, 33, 0.5, 1.086082), (10, 9, 1.0, 14.395651), (100, 39, 0.5, 1.7669)],
)
def test_known_values(clients: int, quorum: int, deadline: float, wanted: float) -> None:
    turnout = Turnout.of(Federation(clients, Exponential(1.0)), quorum, deadline)
    assert broadcasts_as_printed(clients, 1.0, quorum, deadline) == pytest.approx(wanted, rel=5e-5)
    assert broadcasts(turnout) == pytest.approx(wanted, rel=5e-5)


def test_larger_quorum_needs_more_broadcasts() -> None:
    rates = np.random.default_rng(1).lognormal(0.0, 1.0, 12)
    for federation in (Federation(12, Exponential(1.0)), Federation.exponential(rates)):
        found = [broadcasts(Turnout.of(federation, quorum, 0.5)) for quorum in range(1, 13)]
        assert np.all(np.diff(found) > 0)


def test_no_round_succeeds() -> None:
    assert broadcasts(Turnout.of(Federation(3, Uniform(2.0, 3.0)), 1, 1.0)) == np.inf
    assert broadcasts_as_printed(1000, 1.0, 1000, 1e-5) == np.inf
