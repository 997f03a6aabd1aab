"""Observations: what is accepted."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.fitting.observations import Observations

NAN = float("nan")
INF = float("inf")


def test_reported_and_missed_observations() -> None:
    seen = Observations([1.0, NAN, 3.0], deadline=[2.0, 2.5, INF], client=["b", "a", "b"])
    assert seen.reported.tolist() == [True, False, True]
    assert seen.event_times.tolist() == [1.0, 3.0]
    assert seen.clients == ("b", "a")
    assert seen.code.tolist() == [0, 1, 0]
    assert seen.client.tolist() == ["b", "a", "b"]
    assert len(seen) == 3


def test_one_deadline_applies_to_all_and_no_deadline_is_infinite() -> None:
    entries = np.array([1.0, None], dtype=object)
    assert Observations(entries, deadline=2.0).deadline.tolist() == [2.0, 2.0]
    assert Observations([1.0, 2.0]).deadline.tolist() == [INF, INF]
    assert len(Observations([1.0, 2.0]).clients) == 1


def test_numbered_clients_are_named_by_their_number() -> None:
    assert Observations([1.0, 2.0, 3.0], client=np.array([7, 3, 7])).clients == ("7", "3")


def test_a_report_at_the_deadline_is_a_report() -> None:
    assert Observations([2.0], deadline=2.0).reported.all()


def test_entries_are_copied_and_cannot_be_changed() -> None:
    times = np.array([1.0, 2.0])
    seen = Observations(times)
    times[0] = 9.0
    assert seen.seconds[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        seen.seconds[0] = 9.0


@pytest.mark.parametrize(
    ("seconds", "deadline", "client", "message"),
    [
        ([], None, None, "at least one observation"),
        ([[1.0]], None, None, "2 dimensions"),
        (1.0, None, None, "one entry per client and round. Got 1.0"),
        (["soon"], None, None, "seconds must be an array of numbers"),
        ([1.0], "late", None, "deadline must be an array of numbers"),
        ([1.0, 0.0], None, None, "Observation 1: a response time must be above 0"),
        ([-1.0], None, None, "Got -1"),
        ([INF], None, None, "above 0 and finite"),
        ([1.0], 0.0, None, "a deadline must be above 0"),
        ([1.0], -1.0, None, "a deadline must be above 0"),
        ([NAN], 0.0, None, "a deadline must be above 0"),
        ([1.0], NAN, None, "a deadline must be above 0"),
        ([1.0, 2.0, 3.5], 3.0, None, "Observation 2: .*Got 3.5 with the deadline 3"),
        ([1.0, NAN], None, None, "Observation 1: there must be a response time or the deadline"),
        ([1.0], [1.0, 2.0], None, r"one per observation \(1\). Got 2"),
        ([1.0, 2.0], None, ["a"], r"one name per observation \(2\). Got 1"),
        ([1.0], None, "a", "a single value"),
    ],
)
def test_unusable_entries_are_refused(
    seconds: list[float], deadline: float | list[float] | None, client: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Observations(seconds, deadline, client)


def test_the_time_of_sending_is_kept_if_known() -> None:
    assert Observations([1.0]).sent is None
    seen = Observations([1.0, 2.0], sent=[1.7e9, NAN])
    assert seen.sent is not None
    np.testing.assert_array_equal(seen.sent, [1.7e9, NAN])
    for wrong in ([1.0], [INF, 1.0], 3.0, ["noon", "noon"]):
        with pytest.raises(InputError, match="sent"):
            Observations([1.0, 2.0], sent=wrong)
