from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.presence import Battery

INF = float("inf")
BOTH = np.array([0, 1])


def test_spending_by_hand() -> None:
    state = Battery(capacity=2.5, cost=1.0, harvest=0.1, slot=10.0).begin(2, 0)
    assert state.away(0.0).tolist() == [False, False]
    assert state.next_change(0.0) == INF  # nobody waits for energy
    assert state.leaves(BOTH, 0.0).tolist() == [INF, INF]
    state.spend(np.array([0]), 1.0)
    state.spend(np.array([0]), 2.0)
    assert state.save()["level"].tolist() == [0.5, 2.5]
    assert state.away(2.0).tolist() == [True, False]
    assert state.leaves(BOTH, 2.0).tolist() == [2.0, INF]
    assert state.forecast(BOTH, 2.0, 9.0).tolist() == [0.0, 1.0]
    assert state.next_change(2.0) == 10.0
    assert state.next_change(10.0) in (20.0, INF)


def test_a_client_without_energy_starts_no_job() -> None:
    state = Battery(capacity=2.5, cost=1.0, harvest=0.1, start=0.75).begin(2, 0)
    with pytest.raises(InputError, match=r"Client 1 cannot start a job at 9: .* 0.75 and a job co"):
        state.spend(np.array([1]), 9.0)


def test_nothing_is_harvested_within_a_slot() -> None:
    state = Battery(5.0, 1.0, 0.5, slot=10.0, start=0.25).begin(3, 1)
    state.away(np.nextafter(10.0, 0.0))
    assert state.save()["level"].tolist() == [0.25] * 3
    state.away(10.0)
    assert np.all(state.save()["level"] > 0.25)


def test_harvests_are_exponential() -> None:
    clients = 20_000
    state = Battery(1e9, 1.0, 0.5, slot=1.0, start=0.0).begin(clients, 2)
    before = np.zeros(clients)
    for slot in (1.0, 2.0):
        state.away(slot)
        level = state.save()["level"]
        harvest = np.sort(level - before)
        distance = np.abs(-np.expm1(-harvest / 0.5) - np.arange(clients) / clients).max()
        assert distance < 1.95 / np.sqrt(clients)
        before = level


def test_no_battery_holds_more_than_its_capacity() -> None:
    capacity = np.array([1.0, 2.0, 3.0])
    state = Battery(capacity, 1.0, 5.0, slot=1.0, start=0.0).begin(3, 0)
    for now in range(50):
        state.away(float(now))
        assert np.all(state.save()["level"] <= capacity)
    assert state.save()["level"].tolist() == [1.0, 2.0, 3.0]


def test_the_share_of_slots_with_a_job() -> None:
    """Asked once per slot, a large battery pays for harvest / cost jobs; a small one for fewer."""
    clients, slots = 500, 400
    shares = {}
    for capacity in (100.0, 1.0):
        presence = Battery(capacity, 1.0, 0.4, slot=1.0, start=0.0)
        state = presence.begin(clients, 7)
        jobs = np.zeros(clients)
        for slot in range(1, slots + 1):
            here = np.flatnonzero(~state.away(float(slot)))
            state.spend(here, float(slot))
            jobs[here] += 1
        shares[capacity] = jobs.mean() / slots
        assert presence.long_run(clients) == 0.4
    # Energy still in the battery at the end is at most about a job for each client.
    error = 0.4 * np.sqrt(1 / (clients * slots)) + 1.5 / slots
    assert abs(shares[100.0] - 0.4) < 4 * error
    assert shares[1.0] < 0.4 - 4 * error  # what exceeds the capacity is lost


def test_long_run_is_at_most_one() -> None:
    assert Battery(2.0, 1.0, 3.0).long_run(5) == 1.0
    np.testing.assert_allclose(Battery(2.0, 1.0, [0.5, 4.0]).long_run(2), [0.5, 1.0])


def test_one_late_call_equals_many_early_calls_after_spending() -> None:
    make = Battery(3.0, 1.0, 0.3, slot=0.7, start=1.5)
    often, late = make.begin(50, 5), make.begin(50, 5)
    for state in (often, late):
        state.spend(np.arange(0, 50, 2), 0.5)
    for now in np.linspace(0.5, 9.8, 77):
        often.away(float(now))
    np.testing.assert_array_equal(often.away(9.8), late.away(9.8))
    np.testing.assert_array_equal(often.save()["level"], late.save()["level"])


def test_restored_state_must_match_the_federation() -> None:
    state = Battery(3.0, 1.0, 0.3).begin(3, 5)
    with pytest.raises(InputError, match=r"levels of 3 clients.* another federation"):
        state.restore(Battery(3.0, 1.0, 0.3).begin(4, 5).save())
    with pytest.raises(InputError, match="levels of 3 clients"):
        state.restore({})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0.0, 1.0, 1.0), "Battery's capacity must be positive and finite. Got 0"),
        ((1.0, 0.0, 1.0), "Battery's cost must be positive and finite. Got 0"),
        ((1.0, 1.0, 0.0), "Battery's harvest must be positive and finite. Got 0"),
        ((1.0, 1.0, 1.0, 0.0), "Battery's slot must be a positive number. Got 0.0"),
        ((1.0, 1.0, 1.0, 1.0, -1.0), "Battery's start must be not negative and finite. Got -1"),
        ((1.0, 1.0, 1.0, 1.0, 2.0), "start must be at most its capacity. Got 2.0 and 1.0"),
        ((1.0, 2.0, 1.0), "capacity must be at least the cost of a job. Got 1.0 and 2.0"),
        (
            ([1.0, 2.0], 1.0, [1.0, 2.0, 3.0]),
            "one length, with one entry per client. Got lengths 2, 3",
        ),
        (("1", 1.0, 1.0), "Battery's capacity must be a number or a flat list"),
    ],
)
def test_invalid_batteries_are_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Battery(*given)


def test_number_of_values_must_match_the_clients() -> None:
    for ask in (
        Battery(2.0, 1.0, [1.0, 2.0]).long_run,
        lambda n: Battery([2, 2], 1, 1).begin(n, 0),
    ):
        with pytest.raises(InputError, match=r"one number or one per client \(3\). Got 2"):
            ask(3)


def test_text_of_a_battery() -> None:
    presence = Battery(10, 1, 0.5, slot=60)
    assert repr(presence) == (
        "Battery(capacity=10.0, cost=1.0, harvest=0.5, start=None, slot=60.0)"
    )
    assert presence.describe() == (
        "a job costs 1 of a battery of 10 that harvests 0.5 every 60 s; the share counts one job "
        "per such slot"
    )
