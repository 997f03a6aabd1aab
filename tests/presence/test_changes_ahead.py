"""The next changes of all clients at once are those that ``next_change`` tells one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.presence import Battery, DayNight, OnOff, Presence, Trace
from cafe.presence.changes_ahead import ChangesAhead, collect_changes
from tests.support.presences import CLIENTS, PRESENCES

LOOKING_AHEAD = {
    name: make for name, make in PRESENCES.items() if not name.startswith(("by-hour", "battery"))
}


@pytest.mark.parametrize("make", LOOKING_AHEAD.values(), ids=LOOKING_AHEAD)
def test_changes_are_those_that_are_told_one_by_one(make: Callable[[], Presence]) -> None:
    for seed in range(3):
        state, often = make().begin(CLIENTS, seed), make().begin(CLIENTS, seed)
        assert isinstance(state, ChangesAhead)
        now, seen = 0.0, 0
        while now < 40.0:
            times, more = state.changes(now)
            for time, step in zip(times.tolist(), more.tolist(), strict=True):
                present = np.count_nonzero(~often.away(now))
                assert time == often.next_change(now)
                now, seen = time, seen + 1
                assert np.count_nonzero(~often.away(now)) - present == step
            if not len(times):
                now = often.next_change(now)
        assert seen > 20 or isinstance(make(), Trace)
        assert seen > 0


def test_looking_ahead_changes_nothing() -> None:
    state, other = (OnOff(on=2.0, off=3.0).begin(50, 1) for _ in range(2))
    assert isinstance(state, ChangesAhead)
    state.changes(1.0)
    for now in (1.0, 2.5, 30.0):
        np.testing.assert_array_equal(state.away(now), other.away(now))


def test_a_client_that_is_always_present_has_no_changes() -> None:
    state = DayNight(day=1.0, share=1.0).begin(3, 0)
    assert isinstance(state, ChangesAhead)
    assert len(state.changes(0.5).times) == 0


def test_a_battery_changes_slot_by_slot() -> None:
    assert not isinstance(Battery(capacity=2.0, cost=1.0, harvest=1.0).begin(3, 0), ChangesAhead)


def test_clients_that_come_and_go_at_one_time_are_counted_together() -> None:
    first, second = np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 3.0])
    times, more = collect_changes(1.0, 5.0, [first], [second])
    assert times.tolist() == [2.0, 3.0]
    assert more.tolist() == [1, -1]
