"""Names of columns: the unit and the meaning in them."""

from __future__ import annotations

import pytest

from cafe.fitting.log_columns import UNIT_WORDS, UNITS, parse_deadline, split_unit


@pytest.mark.parametrize(
    ("name", "base", "unit"),
    [
        ("seconds", "", "s"),
        ("milliseconds", "", "ms"),
        ("Milliseconds", "", "ms"),
        ("ms", "", "ms"),
        ("latency_ms", "latency", "ms"),
        ("Latency [ms]", "latency", "ms"),
        ("duration (ms)", "duration", "ms"),
        ("durationMs", "duration", "ms"),
        ("duration_in_seconds", "duration", "s"),
        ("response time / min", "response_time", "min"),
        ("elapsed-sec", "elapsed", "s"),
        ("took.us", "took", "us"),
        ("took_µs", "took", "us"),
        ("clientId", "client_id", None),
        ("min", "min", None),
        ("s", "s", None),
        ("timeout", "timeout", None),
        ("", "", None),
    ],
)
def test_the_unit_in_a_name(name: str, base: str, unit: str | None) -> None:
    assert split_unit(name) == (base, unit)


def test_every_unit_has_a_word() -> None:
    assert UNITS.keys() == UNIT_WORDS.keys()


@pytest.mark.parametrize(
    ("given", "unit", "seconds"),
    [
        (5, None, 5.0),
        (5.5, "ms", 0.0055),
        ("5", None, 5.0),
        ("5", "min", 300.0),
        ("500ms", None, 0.5),
        ("2 min", "ms", 120.0),
        ("1e3ms", None, 1.0),
        ("limit", None, None),
        ("5 apples", None, None),
        ("1.2.3", None, None),
        ("7", None, None),
    ],
)
def test_a_deadline_for_all_rows(given: object, unit: str | None, seconds: float | None) -> None:
    # "7" is a column here, and a column wins over a number.
    assert parse_deadline(given, unit, ["7", "limit"]) == (
        None if seconds is None else pytest.approx(seconds)
    )
