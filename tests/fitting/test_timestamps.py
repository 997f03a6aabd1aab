"""Timestamps: numbers, ISO 8601, and date-times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.fitting.timestamps import epoch_unit, is_missing, parse_timestamps

NOON = 1772366400.0  # 2026-03-01 12:00 UTC, by date -d


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01 12:00:00+00:00",
        "2026-03-01T13:00+01:00",
        "2026-03-01 06:30:00-05:30",
        " 2026-03-01T12:00:00.000 ",
        "2026-03-01 12:00:00,000",
        "20260301T120000Z",
        "1772366400",
    ],
)
def test_forms_of_a_time(text: str) -> None:
    assert parse_timestamps([text]).seconds.tolist() == [NOON]


def test_zones_are_noted() -> None:
    assert parse_timestamps(["2026-03-01T12:00Z", ""]).zone is True
    assert parse_timestamps(["2026-03-01T12:00Z", "2026-03-01T12:00"]).zone is False
    assert parse_timestamps(["5", "6"]).zone is None
    assert parse_timestamps(np.array(["2026-03-01T12"], dtype="datetime64[h]")).zone is False


def test_missing_and_wrong_entries() -> None:
    found = parse_timestamps(["", None, float("nan"), "null", 5])
    np.testing.assert_array_equal(found.seconds, [np.nan] * 4 + [5.0])
    assert found.bad is None
    assert parse_timestamps(["2026-03-01", "noon", "later"]).bad == 1
    assert parse_timestamps([True]).bad == 0
    assert parse_timestamps([[1]]).bad == 0
    whole = parse_timestamps(np.array(["2026-03-01", "NaT"], dtype="datetime64[D]"))
    np.testing.assert_array_equal(whole.seconds, [NOON - 43200, np.nan])


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
)
def test_a_written_time_is_read_back(when: datetime, minutes: int) -> None:
    zoned = when.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (when - datetime(1970, 1, 1)).total_seconds() - 60 * minutes
    assert parse_timestamps([zoned.isoformat()]).seconds[0] == pytest.approx(expected, abs=2e-6)
    assert parse_timestamps([zoned]).seconds[0] == pytest.approx(expected, abs=2e-6)
    naive = when.replace(tzinfo=UTC).timestamp()
    assert parse_timestamps([when.isoformat()]).seconds[0] == pytest.approx(naive, abs=2e-6)


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (NOON, 1.0),
        (NOON * 1e3, 1e-3),
        (NOON * 1e6, 1e-6),
        (NOON * 1e9, 1e-9),
        (12.5, None),
        (0, None),
    ],
)
def test_the_unit_of_a_number_since_the_epoch(number: float, unit: float | None) -> None:
    assert epoch_unit(np.array([number, np.nan])) == unit
    assert epoch_unit(np.array([np.nan])) is None


def test_missing_values() -> None:
    present: list[object] = ["0", 0, 0.0, "soon", False, [], "inf"]
    for value in ("", " NaN ", "None", "TIMEOUT", None, float("nan"), np.float64("nan"), "n/a"):
        assert is_missing(value), value
    assert not any(is_missing(value) for value in present)
