from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.errors import InputError
from cafe.presence import DayNight

ONE = np.array([0])


def test_a_day_by_hand() -> None:
    """Without a spread all windows are [0, 4), [10, 14), ..."""
    presence = DayNight(day=10.0, share=0.4, spread=0.0)
    rows = [
        # now, away, leaves, next change
        (0.0, False, 4.0, 4.0),
        (3.0, False, 4.0, 4.0),
        (4.0, True, 4.0, 10.0),
        (9.5, True, 9.5, 10.0),
        (10.0, False, 14.0, 14.0),
        (1013.0, False, 1014.0, 1014.0),
        (1014.0, True, 1014.0, 1020.0),
    ]
    for now, away, leaves, change in rows:
        state = presence.begin(1, 0)
        assert state.away(now).tolist() == [away], now
        assert state.leaves(ONE, now).tolist() == [leaves], now
        assert state.next_change(now) == change, now
    state = presence.begin(1, 0)
    assert state.forecast(ONE, 1.0, 3.9).tolist() == [1.0]
    assert state.forecast(ONE, 1.0, 4.0).tolist() == [0.0]  # away at the window's end
    assert state.forecast(ONE, 5.0, 11.0).tolist() == [0.0]  # away now


def test_starts_are_uniform_over_the_spread() -> None:
    clients, day, spread = 20_000, 100.0, 0.3
    state = DayNight(day, 0.5, spread).begin(clients, 1)
    # From 20 to 40 everybody is present, and leaves 50 after its start.
    assert not state.away(25.0).any()
    starts = np.sort(state.leaves(np.arange(clients), 25.0) - 50.0)
    assert starts[0] >= -15.0
    assert starts[-1] < 15.0
    distance = np.abs((starts + 15.0) / 30.0 - np.arange(clients) / clients).max()
    assert distance < 1.95 / np.sqrt(clients)  # Kolmogorov's, passed once in a thousand


def test_always_present() -> None:
    state = DayNight(share=1.0).begin(3, 0)
    for now in (0.0, 1e5):
        assert not state.away(now).any()
        assert state.leaves(np.arange(3), now).tolist() == [np.inf] * 3
        assert state.next_change(now) == np.inf
        assert state.forecast(np.arange(3), now, np.inf).tolist() == [1.0] * 3


@given(
    share=st.floats(0.01, 0.99), spread=st.floats(0.0, 1.0), day=st.floats(0.1, 1e5),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_the_share_of_a_day(share: float, spread: float, day: float, seed: int) -> None:
    """Each client's windows of ten days last ten times its share, wherever they start."""
    presence = DayNight(day, share, spread)
    state = presence.begin(3, seed)
    now, present = 0.0, np.zeros(3)
    while now < 10 * day:
        then = min(state.next_change(now), 10 * day)
        present += ~state.away(now) * (then - now)
        now = then
    np.testing.assert_allclose(present / (10 * day), share, rtol=1e-9)
    assert presence.long_run(3) == share


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"day": 0.0}, "DayNight's day must be a positive number. Got 0.0"),
        ({"day": "long"}, "DayNight's day must be a positive number. Got 'long'"),
        ({"share": 0}, "share must be above 0. Got 0: the clients would never be present"),
        ({"share": 1.2}, "DayNight's share must be from 0 to 1. Got 1.2"),
        ({"share": None}, "DayNight's share must be from 0 to 1. Got None"),
        ({"spread": -0.1}, "DayNight's spread must be from 0 to 1. Got -0.1"),
        ({"spread": float("nan")}, "DayNight's spread must be from 0 to 1. Got nan"),
    ],
)
def test_invalid_arguments_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DayNight(**given)


def test_text_of_day_and_night() -> None:
    assert repr(DayNight()) == "DayNight(day=86400.0, share=0.5, spread=0.25)"
    assert DayNight().describe() == "each client is present for 0.5 of every 86400 s"
