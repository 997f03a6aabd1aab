from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.presence import OnOff


@pytest.mark.parametrize("now", [0.0, 3.0, 200.0])
def test_the_long_run_share_holds_at_every_time(now: float) -> None:
    """In equilibrium from the start: at any time a client is present with that probability."""
    clients, presence = 40_000, OnOff(on=3.0, off=9.0)
    share = presence.long_run(clients)
    assert share == 0.25
    seen = np.mean(~presence.begin(clients, 11).away(now))
    assert abs(seen - 0.25) < 4 * np.sqrt(0.25 * 0.75 / clients)


@pytest.mark.slow
def test_the_share_of_time() -> None:
    """The share of a long time that each of many clients is present, with its standard error."""
    clients, horizon = 400, 300.0
    on = np.linspace(0.5, 4.0, clients)
    presence = OnOff(on=on, off=2.0)
    state = presence.begin(clients, 3)
    now, present = 0.0, np.zeros(clients)
    while now < horizon:
        then = min(state.next_change(now), horizon)
        present += ~state.away(now) * (then - now)
        now = then
    wanted = presence.long_run(clients)
    np.testing.assert_allclose(wanted, on / (on + 2.0))
    # The variance of the share of time of an alternating Markov process, for a long time.
    error = np.sqrt(2 * (on * 2.0) ** 2 / (on + 2.0) ** 3 / horizon)
    deviation = (present / horizon - wanted) / error
    assert np.all(np.abs(deviation) < 5)
    assert abs(deviation.mean()) < 4 / np.sqrt(clients)
    assert 0.8 < deviation.std() < 1.2


@pytest.mark.slow
def test_windows_are_exponential() -> None:
    """From any time on, how long clients stay, and how long others stay away."""
    clients, start = 2_000, 30.0
    state = OnOff(2.0, 5.0).begin(clients, 9)
    away = state.away(start)
    stays = state.leaves(np.flatnonzero(~away), start) - start
    back, now = np.full(clients, np.inf), start
    while np.isinf(back[away]).any():
        now = state.next_change(now)
        back[~state.away(now) & np.isinf(back)] = now
    for lengths, mean in ((stays, 2.0), (back[away] - start, 5.0)):
        count = np.arange(lengths.size) / lengths.size
        distance = np.abs(-np.expm1(-np.sort(lengths) / mean) - count).max()
        assert distance < 1.95 / np.sqrt(lengths.size)  # Kolmogorov's, passed once in a thousand


def test_the_forecast_is_the_frequency() -> None:
    clients, now, until = 40_000, 7.0, 8.5
    state = OnOff(on=2.0, off=1.0).begin(clients, 4)
    everybody = np.arange(clients)
    present = ~state.away(now)
    forecast = state.forecast(everybody, now, until)
    assert np.all(forecast[~present] == 0)
    np.testing.assert_allclose(forecast[present], np.exp(-0.75))
    stays = state.leaves(everybody, now) > until
    error = np.sqrt(np.exp(-0.75) * (1 - np.exp(-0.75)) / present.sum())
    assert abs(stays[present].mean() - np.exp(-0.75)) < 4 * error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on": 0.0}, "OnOff's on must be positive and finite. Got 0"),
        ({"off": -1.0}, "OnOff's off must be positive and finite. Got -1"),
        ({"off": float("inf")}, "OnOff's off must be positive and finite. Got inf"),
        ({"on": [1.0, 0.0]}, "Got 0 for client 1"),
        ({"on": "1"}, "OnOff's on must be a number or a flat list of numbers.* Got '1'"),
        ({"on": [[1.0]]}, "flat list"),
        ({"on": []}, "flat list"),
        ({"on": None}, "flat list"),
    ],
)
def test_invalid_arguments_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        OnOff(**given)


def test_number_of_values_must_match_the_clients() -> None:
    for ask in (OnOff(on=[1.0, 2.0]).long_run, lambda n: OnOff(off=[1.0, 2.0]).begin(n, 0)):
        with pytest.raises(InputError, match=r"one number or one per client \(3\). Got 2"):
            ask(3)


def test_the_values_cannot_be_changed_later() -> None:
    on = np.array([1.0, 2.0])
    presence = OnOff(on=on)
    on[0] = 9.0
    assert presence == OnOff(on=[1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        presence.on[0] = 9.0  # type: ignore[index]


def test_text_identifies_the_presence() -> None:
    assert repr(OnOff()) == "OnOff(on=3600.0, off=3600.0)"
    assert repr(OnOff(on=[1, 2], off=3)) == "OnOff(on=[1.0, 2.0], off=3.0)"
    many = np.ones(2000)
    other = many.copy()
    other[1000] = 2.0
    assert repr(OnOff(on=many)) != repr(OnOff(on=other))
    assert len(repr(OnOff(on=many))) < 200
    assert OnOff(2, 3).describe() == "clients are present for 2 s and away for 3 s on average"
    unequal = OnOff([1, 3], 5).describe()
    assert unequal == "clients are present for 2 s on average and away for 5 s"


def test_asking_for_some_clients_changes_nothing_for_the_others() -> None:
    some, whole = (OnOff(on=1.0, off=2.0).begin(30, 4) for _ in range(2))
    for now in (0.5, 3.0, 9.0):
        few = np.array([1, 7, 8])
        np.testing.assert_array_equal(some.leaves(few, now), whole.leaves(np.arange(30), now)[few])
        later = now + 1.0
        np.testing.assert_array_equal(
            some.forecast(few[::-1], now, later),
            whole.forecast(np.arange(30), now, later)[few[::-1]],
        )
    np.testing.assert_array_equal(some.away(9.5), whole.away(9.5))
