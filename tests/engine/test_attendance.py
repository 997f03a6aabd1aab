"""Rounds that wait until enough clients are present."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.engine import attendance
from cafe.errors import InfeasibleError
from cafe.presence import DayNight, OnOff, Presence, PresenceState, Trace
from cafe.rounds.ledger import Ledger, LedgerColumns


def ledger(clients: int) -> Ledger:
    return Ledger(LedgerColumns.new(np.ones(clients, dtype=np.int64)))


def test_the_clock_advances_until_the_quorum_is_present() -> None:
    state = Trace([(0, 0.0, 10.0), (1, 4.0, 10.0)]).begin(2, 0)
    known = ledger(2)
    attendance.mark_absent(known, state)
    assert known.absent == 1
    attendance.wait_for_clients(known, state, 2)
    assert (known.now, known.absent) == (4.0, 0)


def test_a_quorum_that_is_never_present() -> None:
    state = Trace([(0, 0.0, 1.0), (1, 4.0, 5.0)]).begin(2, 0)
    known = ledger(2)
    attendance.mark_absent(known, state)
    with pytest.raises(InfeasibleError, match="needs 2 clients, but no more than"):
        attendance.wait_for_clients(known, state, 2)


def test_run_starts_when_clients_are_present() -> None:
    presence = Trace([(0, 3.0, 9.0), (1, 3.0, 9.0)])
    who = cafe.Federation(2, cafe.Constant(1.0), presence=presence)
    history = cafe.simulate(who, cafe.policies.mcu(quorum=2, deadline=1.0), rounds=1)
    assert history.by_round["opened"].tolist() == [3.0]


class OneByOne:
    """A presence that tells only its next change, as the protocol requires."""

    def __init__(self, state: PresenceState) -> None:
        self.away, self.next_change = state.away, state.next_change


@pytest.mark.parametrize(
    "presence",
    [
        OnOff(on=2.0, off=1.0),
        OnOff(on=[0.5 + k % 3 for k in range(60)], off=1.0),
        DayNight(day=3.0, spread=0.9),
        Trace([(k, 0.1 * k, 1.0 + 0.1 * k) for k in range(60)], repeat=8.0),
    ],
    ids=["on-off", "on-off, unequal", "day-night", "trace"],
)
def test_looking_ahead_finds_the_same_time(presence: Presence) -> None:
    waited = 0
    for seed in range(2):
        for quorum in (1, 9, 30, 40, 45):
            ahead, single = ledger(60), ledger(60)
            states = presence.begin(60, seed), OneByOne(presence.begin(60, seed))
            for known, state in zip((ahead, single), states, strict=True):
                known.now = 7.5
                attendance.mark_absent(known, state)  # type: ignore[arg-type]
                try:
                    attendance.wait_for_clients(known, state, quorum)  # type: ignore[arg-type]
                except InfeasibleError as error:
                    known.state = str(error)
            assert (ahead.now, ahead.absent) == (single.now, single.absent)
            assert ahead.state == single.state
            np.testing.assert_array_equal(ahead.away, single.away)
            waited += ahead.now > 7.5
    assert waited > 2


def test_a_wait_of_many_changes_takes_few_passes_over_all_clients() -> None:
    """At time 0 half of the clients of a day-night presence have not come yet."""
    state, known = DayNight(share=0.5, spread=0.25).begin(20_000, 0), ledger(20_000)
    looks, away = 0, state.away

    def counted(now: float) -> object:
        nonlocal looks
        looks += 1
        return away(now)

    state.away = counted  # type: ignore[assignment,method-assign]
    attendance.mark_absent(known, state)
    assert known.absent > 5_000
    attendance.wait_for_clients(known, state, 19_000)
    assert known.clients - known.absent == 19_000
    assert looks == 2
