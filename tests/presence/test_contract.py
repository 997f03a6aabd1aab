"""Properties of every presence that simulators rely on."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import cafe.presence
from cafe.errors import InputError
from cafe.presence import DayNight, OnOff, Presence, PresenceState
from tests.support.presences import CLIENTS, PRESENCES

ALL = np.arange(CLIENTS)
every_presence = pytest.mark.parametrize("make", PRESENCES.values(), ids=PRESENCES)
Make = Callable[[], Presence]


def changes(state: PresenceState, horizon: float = 60.0) -> list[float]:
    """The times of possible changes up to a horizon, as next_change tells them one by one."""
    found, now = [], 0.0
    while (now := state.next_change(now)) <= horizon:
        found.append(now)
        assert len(found) < 10_000
    return found


def test_every_kind_has_an_example() -> None:
    kinds = {c for n in cafe.presence.__all__ if inspect.isclass(c := getattr(cafe.presence, n))}
    assert {type(make()) for make in PRESENCES.values()} == kinds - {Presence, PresenceState}


@every_presence
def test_value_semantics_of_a_presence(make: Make) -> None:
    presence = make()
    assert isinstance(presence, Presence)
    assert repr(presence) == repr(make()) == str(presence)
    assert presence == make()
    assert hash(presence) == hash(make())
    assert presence != DayNight(day=123.0)
    assert pickle.loads(pickle.dumps(presence)) == presence
    assert "\n" not in presence.describe()
    share = np.asarray(presence.long_run(CLIENTS))
    assert share.shape in ((), (CLIENTS,))
    assert np.all((share > 0) & (share <= 1))


@every_presence
def test_no_client_changes_between_two_changes(make: Make) -> None:
    state, often = make().begin(CLIENTS, 3), make().begin(CLIENTS, 3)
    now, mask = 0.0, often.away(0.0)
    times = changes(state)
    assert len(times) >= 3
    for then in times:
        assert then > now
        for share in (0.3, 0.999):
            np.testing.assert_array_equal(often.away(now + share * (then - now)), mask)
        before = np.nextafter(then, 0.0)
        if before > now:
            np.testing.assert_array_equal(often.away(before), mask)
        now, mask = then, often.away(then)


@every_presence
def test_a_client_is_present_until_it_leaves_and_away_then(make: Make) -> None:
    for seed in range(5):
        for now in (0.0, 0.4, 3.3, 9.99, 10.0, 23.4):
            state = make().begin(CLIENTS, seed)
            away, leaves = state.away(now), state.leaves(ALL, now)
            np.testing.assert_array_equal(leaves > now, ~away)
            np.testing.assert_array_equal(leaves[away], now)
            order = np.argsort(leaves, kind="stable")
            for k in order[np.isfinite(leaves[order]) & ~away[order]]:
                before = np.nextafter(leaves[k], 0.0)
                fresh = make().begin(CLIENTS, seed)
                assert not fresh.away(before)[k]
                assert fresh.away(leaves[k])[k]


@every_presence
def test_one_late_call_equals_many_early_calls(make: Make) -> None:
    rng = np.random.default_rng(5)
    often = make().begin(CLIENTS, 8)
    for now in np.cumsum(rng.exponential(0.7, 90)):
        late = make().begin(CLIENTS, 8)
        np.testing.assert_array_equal(late.away(now), often.away(now))
        np.testing.assert_array_equal(late.leaves(ALL, now), often.leaves(ALL, now))
        assert late.next_change(now) == often.next_change(now)
        until = now + rng.exponential(0.5)
        np.testing.assert_array_equal(
            late.forecast(ALL, now, until), often.forecast(ALL, now, until)
        )


@every_presence
def test_returned_mask_is_a_copy(make: Make) -> None:
    state = make().begin(CLIENTS, 1)
    mask = state.away(4.0)
    wanted = mask.copy()
    mask[:] = ~mask
    np.testing.assert_array_equal(state.away(4.0), wanted)


@every_presence
def test_subset_of_clients_gives_the_same_values(make: Make) -> None:
    state, some = make().begin(CLIENTS, 2), np.array([4, 1])
    assert state.leaves(np.empty(0, dtype=np.intp), 2.0).shape == (0,)
    np.testing.assert_array_equal(state.leaves(some, 2.0), state.leaves(ALL, 2.0)[some])
    both = state.forecast(some, 2.0, 2.5)
    np.testing.assert_array_equal(both, state.forecast(ALL, 2.0, 2.5)[some])


@every_presence
def test_forecast_is_a_decreasing_probability(make: Make) -> None:
    state = make().begin(CLIENTS, 4)
    here = ~state.away(5.0)
    np.testing.assert_array_equal(state.forecast(ALL, 5.0, 5.0), here.astype(float))
    last = here.astype(float)
    for until in (5.2, 7.0, 20.0, 1e6):
        found = state.forecast(ALL, 5.0, until)
        assert np.all((found >= 0) & (found <= last))
        last = found
    with pytest.raises(InputError, match="must not end before it begins"):
        state.forecast(ALL, 5.0, 4.0)


@every_presence
def test_saved_state_is_restored(make: Make) -> None:
    state = make().begin(CLIENTS, 6)
    for now in (0.0, 2.0, 4.5, 9.0):
        state.spend(np.flatnonzero(~state.away(now))[:2], now)
    again = make().begin(CLIENTS, 6)
    again.restore(state.save())
    for now in (9.0, 12.0, 40.0):
        np.testing.assert_array_equal(again.away(now), state.away(now))
        assert again.next_change(now) == state.next_change(now)
        some = np.flatnonzero(~state.away(now))[:3]
        state.spend(some, now)
        again.spend(some, now)


@every_presence
def test_saved_state_does_not_change(make: Make) -> None:
    state = make().begin(CLIENTS, 6)
    state.away(20.0)
    saved = state.save()
    copies = {name: value.copy() for name, value in saved.items()}
    state.spend(np.flatnonzero(~state.away(20.0)), 20.0)
    state.away(50.0)
    for name, value in copies.items():
        np.testing.assert_array_equal(saved[name], value)


@every_presence
@pytest.mark.parametrize("now", [float("nan"), float("inf")])
def test_time_must_be_finite(make: Make, now: float) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        make().begin(CLIENTS, 1).away(now)


@pytest.mark.parametrize("name", ["on-off", "trace", "battery"])
def test_time_does_not_go_back(name: str) -> None:
    state = PRESENCES[name]().begin(CLIENTS, 1)
    state.away(3.0)
    with pytest.raises(InputError, match=r"must not decrease. Got 2 after 3: begin a new"):
        state.next_change(2.0)


@every_presence
def test_clients_and_seed_are_checked(make: Make) -> None:
    with pytest.raises(InputError, match="number of clients must be a whole number"):
        make().begin(0, 1)
    with pytest.raises(InputError, match="seed must be a whole number"):
        make().begin(CLIENTS, -1)


def test_seeds_differ() -> None:
    for make in (DayNight, lambda: OnOff(1.0, 1.0)):
        one, two = make().begin(1000, 1), make().begin(1000, 2)
        assert np.any(one.away(1.0) != two.away(1.0))
        np.testing.assert_array_equal(one.away(1.0), make().begin(1000, 1).away(1.0))


def test_a_client_has_the_same_windows_in_any_federation() -> None:
    for make in (lambda: DayNight(10.0), lambda: OnOff(1.0, 1.0)):
        few, many = make().begin(5, 1), make().begin(50, 1)
        for now in (0.0, 2.0, 31.4):
            np.testing.assert_array_equal(few.away(now), many.away(now)[:5])
